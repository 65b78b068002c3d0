"""Metrics of linking and of tasks, confidence intervals and significance tests; numpy only.

>>> from biograft.metrics import Metric
>>> Metric.parse("recall@30")
Metric(name='recall', cutoff=30)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft.metrics.linking import (
        METRICS as METRICS,
        SCORERS as SCORERS,
        Bin as Bin,
        Judgements as Judgements,
        Measure as Measure,
        Metric as Metric,
        RankedAnswer as RankedAnswer,
        brier_score as brier_score,
        calibration_error as calibration_error,
        check_scorer as check_scorer,
        concept_answers as concept_answers,
        lenient as lenient,
        nil_counts as nil_counts,
        reliability as reliability,
        split_composite as split_composite,
        strict as strict,
    )
    from biograft.metrics.precision_recall import (
        ClassReport as ClassReport,
        ConceptSpan as ConceptSpan,
        Counts as Counts,
        Entity as Entity,
        cohen_kappa as cohen_kappa,
        document_counts as document_counts,
        entity_report as entity_report,
        label_report as label_report,
        mention_counts as mention_counts,
    )
    from biograft.metrics.rouge import rouge_scores as rouge_scores
    from biograft.metrics.significance import (
        Difference as Difference,
        EffectSize as EffectSize,
        Interval as Interval,
        TTest as TTest,
        Verdict as Verdict,
        approximate_randomisation as approximate_randomisation,
        bootstrap_counts as bootstrap_counts,
        bootstrap_interval as bootstrap_interval,
        crossed_bootstrap as crossed_bootstrap,
        crossed_ratio_bootstrap as crossed_ratio_bootstrap,
        holm as holm,
        judge_evidence as judge_evidence,
        mcnemar_exact as mcnemar_exact,
        one_sample_t as one_sample_t,
        paired_bootstrap as paired_bootstrap,
        paired_counts as paired_counts,
        paired_t as paired_t,
        welch_t as welch_t,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
