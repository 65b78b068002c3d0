"""Linking metrics as values (``acc@5``), computed from per-query judgements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from biograft.errors import ConfigError, nearest
from biograft.kb.names import whole_number
from biograft.registry import Registry

Values = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Judgements:
    """Judged answers, a row for each query, answered or not.

    ``right[i, k-1]`` is the probability that query ``i`` is right when ``k`` answers count: 0 or 1,
    or between them for tied scores. ``recall[i, k-1]`` is the recall of the query then, a fraction
    where a mention has several concepts.
    """

    right: Values  # (queries, depth)
    recall: Values  # (queries, depth)
    nil: Flags  # (queries,): the gold answer is that no concept fits
    answered_nil: Flags  # (queries,)
    probability: Values  # (queries,): of the first answer; nan if it has none, 0 without answer
    documents: tuple[str, ...]
    """The document of each query; a bootstrap resamples documents."""

    def __len__(self) -> int:
        return len(self.right)

    @property
    def depth(self) -> int:
        """Number of ranks that were judged."""
        return int(self.right.shape[1])

    def take(self, rows: npt.NDArray[np.intp] | Flags) -> Judgements:
        """Return the judgements of some queries."""
        indices = np.flatnonzero(rows) if rows.dtype == bool else rows
        return Judgements(
            self.right[indices],
            self.recall[indices],
            self.nil[indices],
            self.answered_nil[indices],
            self.probability[indices],
            tuple(self.documents[index] for index in indices.tolist()),
        )

    @classmethod
    def join(cls, batches: Sequence[Judgements], documents: tuple[str, ...]) -> Judgements:
        """Concatenate the judgements of several batches, with the documents of all."""
        return cls(
            np.concatenate([batch.right for batch in batches]),
            np.concatenate([batch.recall for batch in batches]),
            np.concatenate([batch.nil for batch in batches]),
            np.concatenate([batch.answered_nil for batch in batches]),
            np.concatenate([batch.probability for batch in batches]),
            documents,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """Computation of a metric: from each query, then averaged, or from all at once.

    Both functions take the judgements and the cut-off (0 where the metric has none).
    """

    of_each: Callable[[Judgements, int], Values] | None = None
    of_all: Callable[[Judgements, int], float] | None = None
    has_cutoff: bool = False


METRICS: Registry[Measure] = Registry(
    "metric",
    {
        "acc": ("linking:ACCURACY", "fraction of queries right among k answers"),
        "recall": ("linking:RECALL", "fraction of gold concepts among k answers"),
        "mrr": ("linking:RECIPROCAL_RANK", "mean of 1 / rank of the right answer"),
        "nil_precision": ("linking:NIL_PRECISION", "fraction of NIL answers that are right"),
        "nil_recall": ("linking:NIL_RECALL", "fraction of NIL queries answered NIL"),
        "nil_f1": ("linking:NIL_F1", "harmonic mean of NIL precision and recall"),
        "ece": ("calibration:ECE", "calibration error, 10 bins of equal width"),
        "ece_mass": ("calibration:ECE_MASS", "the same, bins of equal size"),
        "brier": ("calibration:BRIER", "mean squared error of the probability"),
    },
    group="biograft.metrics",
    home="biograft.metrics",
)


@dataclass(frozen=True, slots=True, order=True)
class Metric:
    """A metric of the registry, with its cut-off where it has one."""

    name: str
    cutoff: int = 0

    @classmethod
    def parse(cls, text: str) -> Metric:
        """Parse the text form of a metric."""
        name, at, cutoff = text.strip().partition("@")
        if name not in METRICS:
            raise ConfigError(f"no metric is called {name!r}; {nearest(name, METRICS)}")
        if METRICS.load(name).has_cutoff != bool(at):
            form = f"{name}@k" if METRICS.load(name).has_cutoff else name
            raise ConfigError(f"metric {text!r}: expected the form {form}")
        number = whole_number(cutoff)
        if at and not number:
            raise ConfigError(f"metric {text!r}: expected a number from 1 after '@'")
        return cls(name, number or 0)

    def __str__(self) -> str:
        return f"{self.name}@{self.cutoff}" if self.cutoff else self.name

    def values(self, judgements: Judgements) -> Values | None:
        """Return the value of each query, or None for metrics over all queries together."""
        measure = METRICS.load(self.name)
        if self.cutoff > judgements.depth:
            raise ConfigError(f"{self}: only {judgements.depth} ranks were judged")
        return measure.of_each(judgements, self.cutoff) if measure.of_each else None

    def __call__(self, judgements: Judgements) -> float:
        """Compute the metric; without any query it is 0."""
        values = self.values(judgements)
        if values is not None:
            return float(values.mean()) if len(values) else 0.0
        compute = METRICS.load(self.name).of_all
        if compute is None or not len(judgements):
            return 0.0
        return compute(judgements, self.cutoff)
