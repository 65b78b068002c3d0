"""The folder of a re-ranker, and the mix of its scores with those of the first ranking.

The logit of candidate c is ``ranker * z(r_c) + context * x_c``, that of NIL ``context * x_nil +
nil``, where r is the score of the first ranking, z standardises it, and x is the score of the
cross-encoder. The three parameters maximise the likelihood of the correct answers on held-out
mentions, with a Gaussian prior towards the context alone, so that few mentions give no extremes.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from biograft.artifacts import ArtifactKind, describe_files, new_folder
from biograft.config import from_mapping
from biograft.errors import ConfigError
from biograft.linking.rerank.config import RerankConfig
from biograft.linking.rerank.model import CrossEncoder

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

_START = np.array([0.0, 1.0, 0.0])
_PRIOR = 1.0
"""Strength of the prior, in mentions."""
_NEWTON_STEPS, _TOLERANCE = 100, 1e-10


@dataclass(frozen=True, slots=True)
class ScoredMention:
    """Both scores of a mention's candidates, and which are correct; NIL comes last."""

    ranker: Floats  # (candidates,)
    context: Floats  # (candidates + 1,)
    right: Flags  # (candidates + 1,)


@dataclass(frozen=True, slots=True)
class Mix:
    """The parameters that combine two scores into one logit."""

    ranker: float = float(_START[0])
    context: float = float(_START[1])
    nil: float = float(_START[2])
    mean: float = 0.0
    deviation: float = 1.0

    def __post_init__(self) -> None:
        values = np.array(list(asdict(self).values()), np.float64)
        valid = np.isfinite(values).all() and self.deviation > 0
        if not valid or self.ranker < 0 or self.context < 0:
            raise ValueError(f"expected finite numbers of at least 0, found {self}")

    @property
    def ranker_weight(self) -> float:
        """Weight of the first ranking in the final score, from 0 to 1."""
        total = self.ranker + self.context
        return self.ranker / total if total else 0.0

    def logits(self, ranker: npt.ArrayLike, context: npt.ArrayLike) -> Floats:
        """Compute the logits of candidates."""
        scaled = (np.asarray(ranker, np.float64) - self.mean) / self.deviation
        return self.ranker * scaled + self.context * np.asarray(context, np.float64)

    def nil_logit(self, context: float) -> float:
        """Compute the logit of NIL."""
        return self.context * context + self.nil

    def to_json(self) -> dict[str, Any]:
        """Return the parameters as plain values."""
        return asdict(self)


def fit_mix(mentions: Sequence[ScoredMention]) -> Mix:
    """Fit the mix to mentions that neither ranking was trained on."""
    mentions = [mention for mention in mentions if mention.right.any()]
    scores = np.concatenate([m.ranker for m in mentions]) if mentions else np.zeros(0)
    if not np.isfinite(scores).all():
        raise ConfigError("ranker: its scores are not finite; use another")
    mean, deviation = (float(scores.mean()), float(scores.std())) if scores.size else (0.0, 1.0)
    deviation = deviation if deviation > 1e-9 else 1.0
    features, right = _stack(mentions, mean, deviation)
    parameters = _maximise(features, right, np.array([True, True, True]))
    while (parameters[:2] < 0).any():
        # a ranking with a negative weight is left out, not inverted
        free = np.append(parameters[:2] > 0, True)
        parameters = _maximise(features, right, free)
    ranker, context, nil = parameters.tolist()
    return Mix(ranker, context, nil, mean, deviation)


def _stack(
    mentions: Sequence[ScoredMention], mean: float, deviation: float
) -> tuple[Floats, Flags]:
    """Stack mentions: (mentions, candidates, 3), padded with NaN."""
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
    """Maximise by damped Fisher scoring over the free parameters; the others stay 0."""
    valid = ~np.isnan(features[..., 0])
    values = np.nan_to_num(features)
    start = np.where(free, _START, 0.0)
    parameters = start.copy()

    def objective(at: Floats) -> float:
        logits = values @ at
        gain = _log_sum(logits, right) - _log_sum(logits, valid)
        return float(gain.sum() - _PRIOR / 2 * ((at - start) ** 2).sum())

    for _ in range(_NEWTON_STEPS):
        logits = values @ parameters
        predicted, target = _softmax(logits, valid), _softmax(logits, right)
        mean = np.einsum("mp,mpf->mf", predicted, values)
        slope = (np.einsum("mp,mpf->mf", target, values) - mean).sum(axis=0)
        slope -= _PRIOR * (parameters - start)
        spread = np.einsum("mp,mpf,mpg->fg", predicted, values, values) - mean.T @ mean
        step = np.where(free, np.linalg.solve(_only(spread, free), np.where(free, slope, 0)), 0)
        length, before = 1.0, objective(parameters)
        while objective(parameters + length * step) < before and length > 1e-8:
            length /= 2
        parameters = parameters + length * step
        if np.abs(length * step).max() < _TOLERANCE:
            break
    return parameters


def _only(spread: Floats, free: Flags) -> Floats:
    """Return the curvature of the free parameters, and the identity for the others."""
    matrix = np.where(np.outer(free, free), spread, 0.0)
    matrix += np.diag(np.where(free, _PRIOR, 1.0))
    return matrix


def _log_sum(logits: Floats, where: Flags) -> Floats:
    masked = np.where(where, logits, -np.inf)
    total: Floats = np.logaddexp.reduce(masked, axis=1)
    return total


def _softmax(logits: Floats, where: Flags) -> Floats:
    masked = np.where(where, logits, -np.inf)
    probabilities: Floats = np.exp(masked - _log_sum(logits, where)[:, None])
    return probabilities


RANKER = "ranker"
RERANKER = ArtifactKind(
    format="biograft-context-ranker",
    version=1,
    called="re-ranker",
    remedy="train the re-ranker again",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankerMetadata:
    """The manifest of a re-ranker: everything but the weights of its encoder."""

    config: RerankConfig
    mix: Mix
    weights: Mapping[str, float]
    """Weights of the generators in the first ranking, if no trained linker made it."""
    report: Mapping[str, Any]
    provenance: Mapping[str, Any]


def write_reranker(
    folder: Path, model: CrossEncoder, metadata: RerankerMetadata, ranker: Path | None
) -> None:
    """Write a re-ranker, replacing an earlier one of the same run."""
    with new_folder(folder, overwrite=True) as work:
        model.save(work)
        if ranker is not None:
            shutil.copytree(ranker, work / RANKER)
        RERANKER.write(work, {**asdict(metadata), "files": describe_files(work)})


def read_metadata(folder: Path) -> RerankerMetadata:
    """Read the manifest of a re-ranker; refuse other formats, versions and damaged folders."""
    manifest = RERANKER.read(folder)
    try:
        RERANKER.check_files(folder, manifest)
        return RerankerMetadata(
            config=from_mapping(RerankConfig, manifest["config"], "config."),
            mix=Mix(**manifest["mix"]),
            weights={name: float(weight) for name, weight in manifest["weights"].items()},
            report=dict(manifest["report"]),
            provenance=dict(manifest["provenance"]),
        )
    except (AttributeError, ConfigError, KeyError, TypeError, ValueError) as error:
        raise RERANKER.damaged(folder / RERANKER.file, repr(error)) from error
