"""Calibration: the probability that the first candidate is correct, and the threshold of NIL.

Two methods, both fitted to pairs of a score and whether the answer was correct:

* ``isotonic``: isotonic regression by pool adjacent violators, interpolated linearly between the
  steps; fits any non-decreasing function, needs some hundred pairs;
* ``platt``: Platt scaling (1999), a logistic function of the score with smoothed targets; two
  parameters, works with few pairs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from biograft.arrays import Floats
from biograft.artifacts import ArtifactKind
from biograft.errors import ConfigError, StoreError
from biograft.linking.candidates import Candidate

CALIBRATION = ArtifactKind(
    format="biograft-calibration",
    version=1,
    called="calibration",
    remedy="remove it, or fit it again with `biograft evaluate link --fit-calibration`",
    file="",
)
SHARPNESS = 10.0
"""Inverse temperature of the softmax that distributes the rest of the probability."""
_NEWTON_STEPS, _TOLERANCE = 100, 1e-12


@dataclass(frozen=True, slots=True)
class Calibration:
    """A non-decreasing function from scores to probabilities, with the data it was fitted to."""

    method: str
    """Method of fitting: isotonic regression or a logistic function."""
    points: tuple[tuple[float, float], ...]
    """Isotonic: (score, probability) corners of the curve; Platt: one pair (slope, offset)."""
    n: int = 0
    """Number of scores it was fitted to."""
    search: str = ""
    """Source of the scores, such as ``lexical*1``; the calibration holds for this search only."""
    threshold: float | None = None
    """Answers with a lower probability are NIL; None if no threshold was chosen."""
    keeps_nil: bool = False
    """Whether NIL is decided by the score, as without a calibration; ``threshold`` is None then."""
    store: str = ""
    """Fingerprint of the knowledge base that was searched: in another one, a score means another
    probability. Empty: not stated, and not compared."""

    def __post_init__(self) -> None:
        faulty = not self.points or not np.isfinite(np.array(self.points)).all()
        if self.method not in _FITS or faulty:
            raise ValueError(f"method {self.method!r} with points {self.points}")

    def __call__(self, scores: npt.ArrayLike) -> Floats:
        """Compute the probabilities of scores."""
        values = np.asarray(scores, np.float64)
        if self.method == "platt":
            slope, offset = self.points[0]
            return logistic(slope * values + offset)
        corners = np.array(self.points)
        chances: Floats = np.interp(values, corners[:, 0], corners[:, 1])
        return chances

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the calibration as JSON.

        Args:
            path: File to write.
            overwrite: Replace a file that exists.
        """
        CALIBRATION.write(Path(path), asdict(self), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | Path, *, remedy: str = CALIBRATION.remedy) -> Calibration:
        """Read a calibration.

        Args:
            path: The file.
            remedy: Advice in the error about a file that cannot be used.

        Raises:
            StoreError: The file is missing, damaged, or states no knowledge base.
        """
        kind = replace(CALIBRATION, remedy=remedy)
        content = kind.read(Path(path))
        if "store" not in content:
            raise StoreError(f"{path}: calibration without its knowledge base; {remedy}")
        try:
            threshold = content["threshold"]
            return cls(
                method=content["method"],
                points=tuple((float(x), float(y)) for x, y in content["points"]),
                n=int(content["n"]),
                search=str(content["search"]),
                threshold=None if threshold is None else float(threshold),
                keeps_nil=bool(content.get("keeps_nil", False)),
                store=str(content["store"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise kind.damaged(Path(path), repr(error)) from error

    def apply(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return candidates, best first, with their probabilities.

        The probability of the first is calibrated, and shared with those that its name belongs to
        as much. The rest is distributed over the others by the softmax of their scores, none above
        the first. That is an upper bound, since none of them may be correct.
        """
        if not candidates:
            return []
        first = float(self(candidates[0].score)) / (1 + len(candidates[0].tied))
        rest = np.array([candidate.score for candidate in candidates[1:]], np.float64)
        weights = np.exp(SHARPNESS * (rest - rest.max(initial=-np.inf)))
        others = np.minimum((1 - first) * weights / max(weights.sum(), 1.0), first)
        return [
            replace(candidate, probability=probability)
            for candidate, probability in zip(candidates, [first, *others.tolist()], strict=True)
        ]


def fit_calibration(
    scores: npt.ArrayLike,
    right: npt.ArrayLike,
    method: str = "isotonic",
    *,
    search: str = "",
    store: str = "",
) -> Calibration:
    """Fit a calibration to first candidates.

    Args:
        scores: The score of each first candidate.
        right: Whether it was correct: 0, 1, or a fraction.
        method: ``isotonic`` or ``platt``.
        search: Source of the scores (``Linker.score_source``); empty: any.
        store: Fingerprint of the knowledge base (``store_fingerprint``); empty: any.

    Raises:
        ConfigError: The method is unknown, or the numbers are out of range.
    """
    values, outcomes = np.asarray(scores, np.float64), np.asarray(right, np.float64)
    if method not in _FITS:
        raise ConfigError(f"method: expected one of {', '.join(_FITS)}, found {method!r}")
    if values.shape != outcomes.shape or values.ndim != 1 or not len(values):
        raise ConfigError(
            f"calibration: expected a score for each outcome, found {values.shape} scores and "
            f"{outcomes.shape} outcomes"
        )
    if not np.isfinite(values).all() or not ((outcomes >= 0) & (outcomes <= 1)).all():
        raise ConfigError("calibration: expected finite scores and outcomes from 0 to 1")
    points = _FITS[method](values, outcomes)
    return Calibration(method, points, len(values), search, store=store)


def _fit_isotonic(scores: Floats, right: Floats) -> tuple[tuple[float, float], ...]:
    """Pool adjacent violators: merge neighbouring blocks while one is above its successor."""
    distinct, group = np.unique(scores, return_inverse=True)
    weights = np.bincount(group).astype(np.float64)
    means = np.bincount(group, right) / weights
    blocks: list[tuple[float, float, int, int]] = []  # mean, weight, first and last score
    for last in range(len(distinct)):
        mean, weight, first = float(means[last]), float(weights[last]), last
        while blocks and blocks[-1][0] >= mean:
            before, n, first, _ = blocks.pop()
            mean, weight = (before * n + mean * weight) / (n + weight), n + weight
        blocks.append((mean, weight, first, last))
    corners = []
    for mean, _, first, last in blocks:
        corners += [(float(distinct[index]), mean) for index in sorted({first, last})]
    return tuple(corners)


def _fit_platt(scores: Floats, right: Floats) -> tuple[tuple[float, float], ...]:
    """Maximise the likelihood of a logistic function by damped Newton steps."""
    n_right, n_wrong = right.sum(), (1 - right).sum()
    high, low = (n_right + 1) / (n_right + 2), 1 / (n_wrong + 2)
    targets = right * high + (1 - right) * low
    features = np.stack([scores, np.ones_like(scores)], axis=1)
    parameters = np.array([0.0, np.log((n_right + 1) / (n_wrong + 1))])
    for _ in range(_NEWTON_STEPS):
        chances = logistic(features @ parameters)
        slope = features.T @ (targets - chances)
        curvature = (features * (chances * (1 - chances))[:, None]).T @ features
        step = np.linalg.lstsq(curvature, slope, rcond=None)[0]
        length, before = 1.0, _likelihood(features @ parameters, targets)
        while (
            _likelihood(features @ (parameters + length * step), targets) < before and length > 1e-6
        ):
            length /= 2
        parameters = parameters + length * step
        if np.abs(length * step).max() < _TOLERANCE:
            break
    return ((float(parameters[0]), float(parameters[1])),)


def _likelihood(logits: Floats, targets: Floats) -> float:
    return float((targets * logits - np.logaddexp(0, logits)).sum())


def logistic(logits: Floats) -> Floats:
    """Return the probabilities of log-odds, however large."""
    chances: Floats = np.exp(-np.logaddexp(0, -logits))
    return chances


_FITS: dict[str, Callable[[Floats, Floats], tuple[tuple[float, float], ...]]] = {
    "isotonic": _fit_isotonic,
    "platt": _fit_platt,
}


def choose_threshold(
    probabilities: npt.ArrayLike, right: npt.ArrayLike, is_nil: npt.ArrayLike, aim: str = "f1"
) -> float:
    """Choose the probability below which the answer is NIL, on held-out data.

    Ties go to the lowest threshold.

    Args:
        probabilities: Probability of the first candidate of each mention.
        right: Whether that candidate is correct.
        is_nil: Whether the mention has no concept in the gold standard.
        aim: ``f1`` maximises the harmonic mean of precision (correct among the answers given) and
            recall (correct among the mentions that have a concept); ``precision>=0.95`` takes the
            lowest threshold with that precision.
    """
    values, good = np.asarray(probabilities, np.float64), np.asarray(right, np.bool_)
    nil = np.asarray(is_nil, np.bool_)
    if not len(values) or not len(values) == len(good) == len(nil):
        raise ConfigError("threshold: expected a probability, an outcome and a gold per mention")
    order = np.argsort(values, kind="stable")[::-1]
    last = np.append(values[order][1:] != values[order][:-1], True)  # equal ones stay together
    n_given = np.arange(1, len(values) + 1)[last]
    n_right = np.cumsum(good[order] & ~nil[order])[last]
    thresholds, precision = values[order][last], n_right / n_given
    minimum = re.fullmatch(r"precision>=(0?\.\d+|[01](?:\.0*)?)", aim)
    if minimum:
        reached = np.flatnonzero(precision >= float(minimum[1]))
        if not len(reached):
            raise ConfigError(f"aim: {aim} cannot be reached; the best is {precision.max():.3f}")
        return float(thresholds[reached[-1]])
    if aim != "f1":
        raise ConfigError(f"aim: expected f1 or precision>=NUMBER, found {aim!r}")
    f1 = 2 * n_right / (n_given + max(int((~nil).sum()), 1))
    return float(thresholds[len(f1) - 1 - int(np.argmax(f1[::-1]))])
