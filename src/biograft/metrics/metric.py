"""What was judged of a run, query by query: the one input of all metrics of linking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from biograft.errors import ConfigError, nearest
from biograft.registry import Registry

Values = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Judgements:
    """How each query was answered; every query has its row, answered or not.

    ``right[i, k-1]`` is the chance that query ``i`` is right when ``k`` answers count: 0 or 1,
    or between them where equal scores leave the order open. ``found[i, k-1]`` is the share of
    the query that is right then, less than all where a mention speaks of several concepts.
    """

    right: Values  # (queries, depth)
    found: Values  # (queries, depth)
    nil: Flags  # (queries,): the gold answer is that no concept fits
    answered_nil: Flags  # (queries,)
    probability: Values  # (queries,): of the first answer; nan where none is said, 0 where none is
    documents: tuple[str, ...]
    """Which document each query is from: what is drawn together in a bootstrap."""

    def __len__(self) -> int:
        return len(self.right)

    @property
    def depth(self) -> int:
        """How many ranks were judged."""
        return int(self.right.shape[1])

    def take(self, rows: npt.NDArray[np.intp] | Flags) -> Judgements:
        """Give the judgements of some queries only."""
        places = np.flatnonzero(rows) if rows.dtype == bool else rows
        return Judgements(
            self.right[places],
            self.found[places],
            self.nil[places],
            self.answered_nil[places],
            self.probability[places],
            tuple(self.documents[place] for place in places.tolist()),
        )

    @classmethod
    def join(cls, pieces: Sequence[Judgements], documents: tuple[str, ...]) -> Judgements:
        """Put the judgements of several batches one after the other, and name their documents."""
        return cls(
            np.concatenate([piece.right for piece in pieces]),
            np.concatenate([piece.found for piece in pieces]),
            np.concatenate([piece.nil for piece in pieces]),
            np.concatenate([piece.answered_nil for piece in pieces]),
            np.concatenate([piece.probability for piece in pieces]),
            documents,
        )


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
        "nil_precision": (
            "biograft.metrics.linking:NIL_PRECISION",
            "share of NIL answers that are right",
        ),
        "nil_recall": ("biograft.metrics.linking:NIL_RECALL", "share of NIL queries answered NIL"),
        "nil_f1": ("biograft.metrics.linking:NIL_F1", "harmonic mean of NIL precision and recall"),
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
