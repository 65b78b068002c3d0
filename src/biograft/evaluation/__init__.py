"""Evaluate linkers: read gold standards, ask, judge, compare, report.

>>> from biograft.evaluation import evaluate_linking, read_gold
>>> gold = read_gold("starter", "sample")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.evaluation.comparison import Comparison as Comparison, paired as paired
    from biograft.evaluation.end_to_end import (
        Score as Score,
        TextResult as TextResult,
        evaluate_text as evaluate_text,
    )
    from biograft.evaluation.gold import (
        GOLD_FORMATS as GOLD_FORMATS,
        Gold as Gold,
        read_gold as read_gold,
    )
    from biograft.evaluation.gold_texts import (
        TEXT_FORMATS as TEXT_FORMATS,
        GoldTexts as GoldTexts,
        read_gold_texts as read_gold_texts,
    )
    from biograft.evaluation.ids import StoreIds as StoreIds, resolve_gold as resolve_gold
    from biograft.evaluation.linking import (
        EvaluationConfig as EvaluationConfig,
        LinkingResult as LinkingResult,
        QueryRow as QueryRow,
        evaluate_linking as evaluate_linking,
    )
    from biograft.evaluation.mistakes import Mistake as Mistake, find_mistakes as find_mistakes
    from biograft.evaluation.nil import nil_as_linked as nil_as_linked
    from biograft.evaluation.populations import (
        Population as Population,
        similarity_buckets as similarity_buckets,
        sub_populations as sub_populations,
    )
    from biograft.evaluation.queries import GoldConfig as GoldConfig, LinkQuery as LinkQuery
    from biograft.evaluation.ranking import NameRanker as NameRanker, Ranker as Ranker
    from biograft.evaluation.report import (
        LinkingReport as LinkingReport,
        write_report as write_report,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
