"""A metric is a value whose text form parses back: ``acc@1``, ``recall@30``, ``mrr``, ``ece``.

>>> str(Metric.parse("acc@5"))
'acc@5'
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from biograft.errors import ConfigError, nearest
from biograft.metrics.judgements import Judgements, Values
from biograft.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """How a metric is computed: from each query, then averaged, or from all at once.

    Both functions take the judgements and the cut-off (0 where the metric has none).
    """

    of_each: Callable[[Judgements, int], Values] | None = None
    of_all: Callable[[Judgements, int], float] | None = None
    has_cutoff: bool = False


METRICS: Registry[Measure] = Registry(
    "metric",
    {
        "acc": ("biograft.metrics.linking:ACCURACY", "share of queries right among k answers"),
        "recall": ("biograft.metrics.linking:RECALL", "share of what is meant among k answers"),
        "mrr": ("biograft.metrics.linking:RECIPROCAL_RANK", "mean of 1 / rank of the right answer"),
        "nil_precision": ("biograft.metrics.nil:PRECISION", "share of NIL answers that are right"),
        "nil_recall": ("biograft.metrics.nil:RECALL", "share of NIL queries answered NIL"),
        "nil_f1": ("biograft.metrics.nil:F1", "harmonic mean of NIL precision and recall"),
        "ece": ("biograft.metrics.calibration:ECE", "calibration error, 10 bins of equal width"),
        "ece_mass": ("biograft.metrics.calibration:ECE_MASS", "the same, bins of equal size"),
        "brier": ("biograft.metrics.calibration:BRIER", "mean squared error of the probability"),
    },
)


@dataclass(frozen=True, slots=True, order=True)
class Metric:
    """A metric of the registry, with its cut-off where it has one."""

    name: str
    cutoff: int = 0

    @classmethod
    def parse(cls, text: str) -> Metric:
        """Read the text form of a metric."""
        name, at, number = text.strip().partition("@")
        if name not in METRICS:
            raise ConfigError(f"no metric is called {name!r}; {nearest(name, METRICS)}")
        if METRICS.load(name).has_cutoff != bool(at):
            form = f"{name}@k" if METRICS.load(name).has_cutoff else name
            raise ConfigError(f"metric {text!r}: expected the form {form}")
        if at and not (number.isascii() and number.isdigit() and int(number) > 0):
            raise ConfigError(f"metric {text!r}: expected a number from 1 after '@'")
        return cls(name, int(number) if at else 0)

    def __str__(self) -> str:
        return f"{self.name}@{self.cutoff}" if self.cutoff else self.name

    def values(self, judged: Judgements) -> Values | None:
        """Give the value of each query, or None where only all together have one."""
        measure = METRICS.load(self.name)
        if self.cutoff > judged.depth:
            raise ConfigError(f"{self}: only {judged.depth} ranks were judged")
        return measure.of_each(judged, self.cutoff) if measure.of_each else None

    def __call__(self, judged: Judgements) -> float:
        """Compute the metric; without any query it is 0."""
        values = self.values(judged)
        if values is not None:
            return float(values.mean()) if len(values) else 0.0
        compute = METRICS.load(self.name).of_all
        if compute is None or not len(judged):
            return 0.0
        return compute(judged, self.cutoff)
