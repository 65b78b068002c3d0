"""Metrics: of linking, as values whose text form parses back; of tasks, by class; numpy only.

>>> from biograft.metrics import Metric
>>> Metric.parse("recall@30")
Metric(name='recall', cutoff=30)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.metrics.calibration import (
        Bin,
        brier_score,
        calibration_error,
        given_answers,
        reliability,
    )
    from biograft.metrics.classes import ClassReport, Entity, entity_report, label_report
    from biograft.metrics.counts import Counts
    from biograft.metrics.judgements import Judgements
    from biograft.metrics.linking import SCORERS, Answer, benchmark_parts, lenient, strict
    from biograft.metrics.metric import METRICS, Metric
    from biograft.metrics.nil import nil_counts
    from biograft.metrics.significance import (
        Difference,
        Interval,
        approximate_randomisation,
        bootstrap_counts,
        bootstrap_interval,
        mcnemar_exact,
        paired_bootstrap,
    )
    from biograft.metrics.spans import Span, document_counts, mention_counts
    from biograft.metrics.t_tests import TTest, one_sample_t, paired_t, welch_t

__all__ = [
    "METRICS",
    "SCORERS",
    "Answer",
    "Bin",
    "ClassReport",
    "Counts",
    "Difference",
    "Entity",
    "Interval",
    "Judgements",
    "Metric",
    "Span",
    "TTest",
    "approximate_randomisation",
    "benchmark_parts",
    "bootstrap_counts",
    "bootstrap_interval",
    "brier_score",
    "calibration_error",
    "document_counts",
    "entity_report",
    "given_answers",
    "label_report",
    "lenient",
    "mcnemar_exact",
    "mention_counts",
    "nil_counts",
    "one_sample_t",
    "paired_bootstrap",
    "paired_t",
    "reliability",
    "strict",
    "welch_t",
]

_HOMES = {
    "Answer": "biograft.metrics.linking",
    "Bin": "biograft.metrics.calibration",
    "ClassReport": "biograft.metrics.classes",
    "Counts": "biograft.metrics.counts",
    "Difference": "biograft.metrics.significance",
    "Entity": "biograft.metrics.classes",
    "Interval": "biograft.metrics.significance",
    "Judgements": "biograft.metrics.judgements",
    "METRICS": "biograft.metrics.metric",
    "Metric": "biograft.metrics.metric",
    "SCORERS": "biograft.metrics.linking",
    "Span": "biograft.metrics.spans",
    "TTest": "biograft.metrics.t_tests",
    "approximate_randomisation": "biograft.metrics.significance",
    "benchmark_parts": "biograft.metrics.linking",
    "bootstrap_counts": "biograft.metrics.significance",
    "bootstrap_interval": "biograft.metrics.significance",
    "brier_score": "biograft.metrics.calibration",
    "calibration_error": "biograft.metrics.calibration",
    "document_counts": "biograft.metrics.spans",
    "entity_report": "biograft.metrics.classes",
    "given_answers": "biograft.metrics.calibration",
    "label_report": "biograft.metrics.classes",
    "lenient": "biograft.metrics.linking",
    "mcnemar_exact": "biograft.metrics.significance",
    "mention_counts": "biograft.metrics.spans",
    "nil_counts": "biograft.metrics.nil",
    "one_sample_t": "biograft.metrics.t_tests",
    "paired_bootstrap": "biograft.metrics.significance",
    "paired_t": "biograft.metrics.t_tests",
    "reliability": "biograft.metrics.calibration",
    "strict": "biograft.metrics.linking",
    "welch_t": "biograft.metrics.t_tests",
}

__getattr__ = load_on_use(__name__, _HOMES)
