"""Metrics of linking and of tasks, confidence intervals and significance tests; numpy only.

>>> from biograft.metrics import Metric
>>> Metric.parse("recall@30")
Metric(name='recall', cutoff=30)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft.metrics.calibration import (
        Bin as Bin,
        brier_score as brier_score,
        calibration_error as calibration_error,
        concept_answers as concept_answers,
        reliability as reliability,
    )
    from biograft.metrics.evidence import (
        EffectSize as EffectSize,
        Verdict as Verdict,
        crossed_bootstrap as crossed_bootstrap,
        crossed_ratio_bootstrap as crossed_ratio_bootstrap,
        holm as holm,
        judge_evidence as judge_evidence,
    )
    from biograft.metrics.linking import (
        SCORERS as SCORERS,
        RankedAnswer as RankedAnswer,
        check_scorer as check_scorer,
        lenient as lenient,
        nil_counts as nil_counts,
        split_composite as split_composite,
        strict as strict,
    )
    from biograft.metrics.metric import (
        METRICS as METRICS,
        Judgements as Judgements,
        Measure as Measure,
        Metric as Metric,
    )
    from biograft.metrics.precision_recall import (
        ClassReport as ClassReport,
        ConceptSpan as ConceptSpan,
        Counts as Counts,
        Entity as Entity,
        document_counts as document_counts,
        entity_report as entity_report,
        label_report as label_report,
        mention_counts as mention_counts,
    )
    from biograft.metrics.significance import (
        Difference as Difference,
        Interval as Interval,
        TTest as TTest,
        approximate_randomisation as approximate_randomisation,
        bootstrap_counts as bootstrap_counts,
        bootstrap_interval as bootstrap_interval,
        mcnemar_exact as mcnemar_exact,
        one_sample_t as one_sample_t,
        paired_bootstrap as paired_bootstrap,
        paired_counts as paired_counts,
        paired_t as paired_t,
        welch_t as welch_t,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
