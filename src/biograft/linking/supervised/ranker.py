"""The trained ranker: a small network scores candidate concepts by their features.

It runs on numpy; torch is only needed to train it (:mod:`biograft.training.linkers.supervised`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import erf, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from biograft.artifacts import ArtifactKind, describe_files, new_folder, open_array, save_array
from biograft.errors import StoreError
from biograft.kb import KnowledgeBase
from biograft.kb.fingerprints import store_fingerprint
from biograft.linking.candidates import Candidate, Rows
from biograft.linking.fusion import CandidateBuilder, CandidatePool
from biograft.linking.queries import Context
from biograft.linking.supervised.config import RankerConfig
from biograft.linking.supervised.features import (
    CandidateFeatures,
    FeatureExtractor,
    MentionMemory,
    feature_names,
)

F32 = npt.NDArray[np.float32]
_AXES = (1, 1, 3, 2, 2)
"""The number of axes of each array of a network."""
_erf = np.vectorize(erf, otypes=[np.float64])


@dataclass(frozen=True)
class Network:
    """An ensemble of networks with one hidden layer, whose scores are averaged."""

    mean: F32  # (features,)
    scale: F32  # (features,)
    inner: F32  # (networks, hidden, features)
    inner_bias: F32  # (networks, hidden)
    outer: F32  # (networks, hidden)

    def score(self, features: F32) -> F32:
        """Score candidates: (candidates, features) to (candidates,)."""
        inputs = (features - self.mean) / self.scale
        states = np.einsum("cf,nhf->nch", inputs, self.inner) + self.inner_bias[:, None]
        active = states * 0.5 * (1 + _erf(states / sqrt(2)))  # GELU
        scores: F32 = np.einsum("nch,nh->c", active, self.outer) / len(self.outer)
        return scores

    def save(self, folder: Path) -> None:
        """Write the weights as numpy arrays."""
        for name, array in self.__dict__.items():
            save_array(folder / f"{name}.npy", array)

    @classmethod
    def load(cls, folder: Path, n_features: int) -> Network:
        """Load the weights, refusing shapes that are inconsistent."""
        try:
            arrays = {
                name: open_array(folder / f"{name}.npy", np.float32, n_axes=n_axes)
                for name, n_axes in zip(cls.__annotations__, _AXES, strict=True)
            }
        except ValueError as error:
            raise StoreError(f"{folder}: damaged ({error}); train the linker again") from error
        network = cls(**arrays)
        n, hidden = network.inner_bias.shape
        expected = [(n_features,)] * 2 + [(n, hidden, n_features), (n, hidden), (n, hidden)]
        if not n or [array.shape for array in arrays.values()] != expected:
            raise StoreError(f"{folder}: damaged: weights of wrong shapes; train the linker again")
        # an infinite scale disables a feature that was constant in training
        finite = all(np.isfinite(a).all() for name, a in arrays.items() if name != "scale")
        if not finite or not (network.scale > 0).all():
            raise StoreError(
                f"{folder}: its weights hold NaN, infinity or a scale of 0; train the linker again"
            )
        return network


MEMORY = "memory.json"
RANKER = ArtifactKind(
    format="biograft-ranker",
    version=1,
    called="trained ranker",
    remedy="train the linker again",
)


class TrainedRanker:
    """Ranks the concepts of a candidate pool by a network trained on labelled mentions."""

    name = "ranker"
    uses_context = False

    def __init__(
        self,
        kb: KnowledgeBase,
        network: Network,
        memory: MentionMemory,
        generators: Sequence[str],
    ) -> None:
        self.kb, self.network, self.memory = kb, network, memory
        self.generators = tuple(generators)
        self._features = FeatureExtractor(kb, memory)
        self._maker = CandidateBuilder(kb)

    def rank_candidates(
        self, texts: Sequence[str], pool: CandidatePool, contexts: Sequence[Context]
    ) -> list[list[Candidate]]:
        """Return one candidate per concept, best first; ties go to the lower concept."""
        if pool.generators != self.generators:
            raise StoreError(
                f"the trained linker ranks what {' and '.join(self.generators)} find, the index "
                f"has {' and '.join(pool.generators)}; use the kind of index it was trained "
                "with"
            )
        scores = np.full(pool.rows.shape, -np.inf, np.float32)
        for index, text in enumerate(texts):
            candidates = self._features.compute(text, pool, index)
            scores[index] = self._name_scores(pool.rows[index], candidates)
        return self._maker.by_concept(pool, scores, pool.rows.shape[1])

    def _name_scores(self, rows: Rows, candidates: CandidateFeatures) -> F32:
        """Give every name the score of its concept, and the concept's best name a little more."""
        scores = np.full(len(rows), -np.inf, np.float32)
        if len(candidates.concepts):
            of_concept = self.network.score(candidates.features)
            valid = rows >= 0
            concept = np.searchsorted(candidates.concepts, self._features.concepts_of(rows[valid]))
            scores[valid] = of_concept[concept] - np.float32(1e-4)
            scores[candidates.best] = of_concept
        return scores

    def save(
        self, folder: Path, config: RankerConfig, report: dict[str, Any], *, overwrite: bool = False
    ) -> None:
        """Write the ranker to a folder."""
        with new_folder(folder, overwrite=overwrite) as work:
            self.network.save(work)
            memory = json.dumps(self.memory.to_json(self.kb), ensure_ascii=False)
            (work / MEMORY).write_text(memory, encoding="utf-8")
            content = {
                "store": store_fingerprint(self.kb),
                "config": asdict(config),
                "generators": list(self.generators),
                "features": feature_names(self.generators),
                "report": report,
                "files": describe_files(work),
            }
            RANKER.write(work, content)


def load_trained_ranker(folder: Path, kb: KnowledgeBase) -> TrainedRanker:
    """Load a trained ranker for a store, which need not be the one it was trained with."""
    manifest = RANKER.read(folder)
    try:
        generators = [str(name) for name in manifest["generators"]]
        features = list(manifest["features"])
    except (KeyError, TypeError) as error:
        raise RANKER.damaged(folder / RANKER.file, repr(error)) from error
    expected = feature_names(generators)
    if features != expected:
        raise StoreError(f"{folder}: trained with other features; train the linker again")
    network, memory = Network.load(folder, len(expected)), _read_memory(folder / MEMORY, kb)
    RANKER.check_files(folder, manifest, hashes=True)
    return TrainedRanker(kb, network, memory, generators)


def _read_memory(path: Path, kb: KnowledgeBase) -> MentionMemory:
    try:
        return MentionMemory.from_json(json.loads(path.read_bytes()), kb)
    except (OSError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise RANKER.damaged(path, repr(error)) from error
