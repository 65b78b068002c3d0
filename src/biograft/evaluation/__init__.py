"""Evaluation of linkers: gold standards, metrics with intervals, comparisons and reports.

>>> from biograft.evaluation import evaluate_linking, read_gold
>>> gold = read_gold("starter", "sample")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft.evaluation.agreement import (
        Agreement as Agreement,
        AnnotatorDifference as AnnotatorDifference,
        compare_annotators as compare_annotators,
    )
    from biograft.evaluation.analysis import (
        ErrorCause as ErrorCause,
        ErrorKind as ErrorKind,
        Mistake as Mistake,
        Population as Population,
        count_causes as count_causes,
        count_kinds as count_kinds,
        find_mistakes as find_mistakes,
        name_similarity as name_similarity,
        score_reachable as score_reachable,
        similarity_buckets as similarity_buckets,
        sub_populations as sub_populations,
    )
    from biograft.evaluation.assertion import (
        AssertionDocument as AssertionDocument,
        AssertionMistake as AssertionMistake,
        AssertionResult as AssertionResult,
        Finding as Finding,
        FindingMistake as FindingMistake,
        FindingsResult as FindingsResult,
        GoldAssertion as GoldAssertion,
        evaluate_assertions as evaluate_assertions,
        evaluate_findings as evaluate_findings,
        read_assertions as read_assertions,
    )
    from biograft.evaluation.cblue import (
        CBLUE as CBLUE,
        pack_submissions as pack_submissions,
        score_submission as score_submission,
        write_submission as write_submission,
    )
    from biograft.evaluation.comparison import (
        Comparison as Comparison,
        ScoredQueries as ScoredQueries,
        compare as compare,
        paired as paired,
        save_answers as save_answers,
    )
    from biograft.evaluation.end_to_end import (
        Score as Score,
        TextResult as TextResult,
        evaluate_text as evaluate_text,
    )
    from biograft.evaluation.figures import (
        draw_figures as draw_figures,
    )
    from biograft.evaluation.gold import (
        GOLD_FORMATS as GOLD_FORMATS,
        TEXT_FORMATS as TEXT_FORMATS,
        Gold as Gold,
        GoldConfig as GoldConfig,
        GoldReader as GoldReader,
        GoldTexts as GoldTexts,
        LinkQuery as LinkQuery,
        TextIndex as TextIndex,
        read_gold as read_gold,
        read_gold_texts as read_gold_texts,
        to_queries as to_queries,
    )
    from biograft.evaluation.linking import (
        EvaluationConfig as EvaluationConfig,
        GoldQueries as GoldQueries,
        LinkingResult as LinkingResult,
        NameRanker as NameRanker,
        QueryRow as QueryRow,
        Ranker as Ranker,
        Resolved as Resolved,
        StoreIds as StoreIds,
        calibrate_linker as calibrate_linker,
        calibrate_result as calibrate_result,
        calibration_gain as calibration_gain,
        drop_queries as drop_queries,
        evaluate as evaluate,
        evaluate_linking as evaluate_linking,
        nil_as_linked as nil_as_linked,
        read_queries as read_queries,
        resolve_gold as resolve_gold,
        run_queries as run_queries,
    )
    from biograft.evaluation.report import (
        REPORT as REPORT,
        LinkingReport as LinkingReport,
        to_html as to_html,
        to_markdown as to_markdown,
        write_report as write_report,
    )
    from biograft.evaluation.robustness import (
        RobustnessCase as RobustnessCase,
        RobustnessConfig as RobustnessConfig,
        RobustnessResult as RobustnessResult,
        evaluate_robustness as evaluate_robustness,
        save_cases as save_cases,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
