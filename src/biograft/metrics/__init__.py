"""Metrics: of linking, as values whose text form parses back; of tasks, by class; numpy only.

>>> from biograft.metrics import Metric
>>> Metric.parse("recall@30")
Metric(name='recall', cutoff=30)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.metrics.calibration import (
        Bin as Bin,
        brier_score as brier_score,
        calibration_error as calibration_error,
        given_answers as given_answers,
        reliability as reliability,
    )
    from biograft.metrics.classes import (
        ClassReport as ClassReport,
        Entity as Entity,
        entity_report as entity_report,
        label_report as label_report,
    )
    from biograft.metrics.counts import Counts as Counts
    from biograft.metrics.judgements import Judgements as Judgements
    from biograft.metrics.linking import (
        SCORERS as SCORERS,
        Answer as Answer,
        benchmark_parts as benchmark_parts,
        lenient as lenient,
        strict as strict,
    )
    from biograft.metrics.metric import METRICS as METRICS, Metric as Metric
    from biograft.metrics.nil import nil_counts as nil_counts
    from biograft.metrics.significance import (
        Difference as Difference,
        Interval as Interval,
        approximate_randomisation as approximate_randomisation,
        bootstrap_counts as bootstrap_counts,
        bootstrap_interval as bootstrap_interval,
        mcnemar_exact as mcnemar_exact,
        paired_bootstrap as paired_bootstrap,
    )
    from biograft.metrics.spans import (
        Span as Span,
        document_counts as document_counts,
        mention_counts as mention_counts,
    )
    from biograft.metrics.t_tests import (
        TTest as TTest,
        one_sample_t as one_sample_t,
        paired_t as paired_t,
        welch_t as welch_t,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
