"""How much the first ranking counts beside the context: three numbers fitted on held-out mentions.

The logit of candidate c is ``ranker * z(r_c) + context * x_c``, that of NIL ``context * x_nil +
nil``, where r is the first ranking's score, z brings it to mean 0 and deviation 1, and x is the
cross-encoder's score. The numbers maximise the likelihood of what is right, drawn a little
towards trusting the context alone, so that few mentions do not lead to extremes.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from biograft.artifacts import Kind, file_sizes, new_folder
from biograft.config import from_mapping
from biograft.errors import ConfigError
from biograft.linking.rerank.config import RerankConfig
from biograft.linking.rerank.model import CrossEncoder

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

_START = np.array([0.0, 1.0, 0.0])
_PULL = 1.0
"""How strongly the numbers are drawn to the start, in mentions."""
_NEWTON_STEPS, _SETTLED = 100, 1e-10


@dataclass(frozen=True, slots=True)
class ScoredMention:
    """The two scores of a mention's candidates, and which are right; NIL comes last."""

    ranker: Floats  # (candidates,)
    context: Floats  # (candidates + 1,)
    right: Flags  # (candidates + 1,)


@dataclass(frozen=True, slots=True)
class Mix:
    """The numbers that make one logit of two scores."""

    ranker: float = float(_START[0])
    context: float = float(_START[1])
    nil: float = float(_START[2])
    mean: float = 0.0
    deviation: float = 1.0

    def __post_init__(self) -> None:
        numbers = np.array(list(asdict(self).values()), np.float64)
        fine = np.isfinite(numbers).all() and self.deviation > 0
        if not fine or self.ranker < 0 or self.context < 0:
            raise ValueError(f"expected finite numbers of at least 0, found {self}")

    @property
    def share(self) -> float:
        """How much of the final score is the first ranking's, from 0 to 1."""
        total = self.ranker + self.context
        return self.ranker / total if total else 0.0

    def logits(self, ranker: npt.ArrayLike, context: npt.ArrayLike) -> Floats:
        """Give the logits of candidates."""
        scaled = (np.asarray(ranker, np.float64) - self.mean) / self.deviation
        return self.ranker * scaled + self.context * np.asarray(context, np.float64)

    def nil_logit(self, context: float) -> float:
        """Give the logit of no candidate being right."""
        return self.context * context + self.nil

    def to_json(self) -> dict[str, Any]:
        """Give the numbers as plain values."""
        return asdict(self)


def fit_mix(mentions: Sequence[ScoredMention]) -> Mix:
    """Fit the mix to mentions that neither ranking has learnt from."""
    known = [mention for mention in mentions if mention.right.any()]
    scores = np.concatenate([m.ranker for m in known]) if known else np.zeros(0)
    if not np.isfinite(scores).all():
        raise ConfigError("ranker: gives scores that are no finite numbers; use another")
    mean, deviation = (float(scores.mean()), float(scores.std())) if scores.size else (0.0, 1.0)
    deviation = deviation if deviation > 1e-9 else 1.0
    features, right = _stack(known, mean, deviation)
    found = _maximise(features, right, np.array([True, True, True]))
    while (found[:2] < 0).any():
        # a ranking that speaks against what is right is left out, not turned round
        free = np.append(found[:2] > 0, True)
        found = _maximise(features, right, free)
    ranker, context, nil = found.tolist()
    return Mix(ranker, context, nil, mean, deviation)


def _stack(
    mentions: Sequence[ScoredMention], mean: float, deviation: float
) -> tuple[Floats, Flags]:
    """Put mentions side by side: (mentions, places, 3), NaN where a mention has fewer."""
    widest = max((len(m.context) for m in mentions), default=1)
    features = np.full((len(mentions), widest, 3), np.nan)
    right = np.zeros((len(mentions), widest), np.bool_)
    for row, mention in enumerate(mentions):
        n = len(mention.ranker)
        features[row, :n, 0] = (mention.ranker - mean) / deviation
        features[row, n, 0] = 0
        features[row, : n + 1, 1] = mention.context
        features[row, : n + 1, 2] = np.arange(n + 1) == n
        right[row, : n + 1] = mention.right
    return features, right


def _maximise(features: Floats, right: Flags, free: Flags) -> Floats:
    """Climb by damped scoring steps in the numbers that are free; the others stay 0."""
    there = ~np.isnan(features[..., 0])
    values = np.nan_to_num(features)
    found, start = np.where(free, _START, 0.0), np.where(free, _START, 0.0)

    def objective(at: Floats) -> float:
        logits = values @ at
        gain = _log_sum(logits, right) - _log_sum(logits, there)
        return float(gain.sum() - _PULL / 2 * ((at - start) ** 2).sum())

    for _ in range(_NEWTON_STEPS):
        logits = values @ found
        every, good = _softmax(logits, there), _softmax(logits, right)
        centre = np.einsum("mp,mpf->mf", every, values)
        slope = (np.einsum("mp,mpf->mf", good, values) - centre).sum(axis=0)
        slope -= _PULL * (found - start)
        spread = np.einsum("mp,mpf,mpg->fg", every, values, values) - centre.T @ centre
        step = np.where(free, np.linalg.solve(_only(spread, free), np.where(free, slope, 0)), 0)
        length, before = 1.0, objective(found)
        while objective(found + length * step) < before and length > 1e-8:
            length /= 2
        found = found + length * step
        if np.abs(length * step).max() < _SETTLED:
            break
    return found


def _only(spread: Floats, free: Flags) -> Floats:
    """Give the curvature in the free numbers, and the identity in the others."""
    matrix = np.where(np.outer(free, free), spread, 0.0)
    matrix += np.diag(np.where(free, _PULL, 1.0))
    return matrix


def _log_sum(logits: Floats, where: Flags) -> Floats:
    masked = np.where(where, logits, -np.inf)
    total: Floats = np.logaddexp.reduce(masked, axis=1)
    return total


def _softmax(logits: Floats, where: Flags) -> Floats:
    masked = np.where(where, logits, -np.inf)
    shares: Floats = np.exp(masked - _log_sum(logits, where)[:, None])
    return shares


RANKER = "ranker"
RERANKER = Kind(
    format="biograft-context-ranker",
    version=1,
    called="re-ranker",
    remedy="train the re-ranker again",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """All of a re-ranker but its weights."""

    config: RerankConfig
    mix: Mix
    weights: Mapping[str, float]
    """How much each generator counted in the first ranking, where no trained linker made it."""
    report: Mapping[str, Any]
    provenance: Mapping[str, Any]


def write_reranker(
    folder: Path, model: CrossEncoder, described: Description, ranker: Path | None
) -> None:
    """Write a re-ranker, replacing an earlier one of the same run."""
    with new_folder(folder, overwrite=True) as work:
        model.save(work)
        if ranker is not None:
            shutil.copytree(ranker, work / RANKER)
        RERANKER.write(work, {**asdict(described), "files": file_sizes(work)})


def read_description(folder: Path) -> Description:
    """Read what a re-ranker is, refusing what is none, of another version or not whole."""
    manifest = RERANKER.read(folder)
    try:
        RERANKER.check_files(folder, manifest)
        return Description(
            config=from_mapping(RerankConfig, manifest["config"], "config."),
            mix=Mix(**manifest["mix"]),
            weights={name: float(weight) for name, weight in manifest["weights"].items()},
            report=dict(manifest["report"]),
            provenance=dict(manifest["provenance"]),
        )
    except (AttributeError, ConfigError, KeyError, TypeError, ValueError) as error:
        raise RERANKER.damaged(folder / RERANKER.file, repr(error)) from error
