"""A trained ranker: its folder on disk, and its place in the linker."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import biograft
from biograft.errors import StoreError
from biograft.kb import KnowledgeBase
from biograft.linking.candidates import Candidate
from biograft.linking.choosing import CandidateMaker
from biograft.linking.gathering import Gathered
from biograft.linking.provenance import store_fingerprint
from biograft.linking.rankers import Context
from biograft.linking.supervised.config import RankerConfig
from biograft.linking.supervised.features import FeatureMaker, feature_names
from biograft.linking.supervised.memory import MentionMemory
from biograft.linking.supervised.network import Network
from biograft.runs import new_folder

FORMAT, VERSION = "biograft-ranker", 1
MANIFEST, MEMORY = "manifest.json", "memory.json"


class TrainedRanker:
    """Ranks the concepts that generators gathered by what it learned from mentions."""

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
        self._features = FeatureMaker(kb, memory)
        self._maker = CandidateMaker(kb)

    def rank_candidates(
        self, texts: Sequence[str], gathered: Gathered, contexts: Sequence[Context]
    ) -> list[list[Candidate]]:
        """Give one candidate for each concept, best first; equal scores by the lower concept."""
        if gathered.generators != self.generators:
            raise StoreError(
                f"the trained linker ranks what {' and '.join(self.generators)} find, the index "
                f"has {' and '.join(gathered.generators)}; use the kind of index it was trained "
                "with"
            )
        scores = np.full(gathered.rows.shape, -np.inf, np.float32)
        for place, text in enumerate(texts):
            made = self._features.compute(text, gathered, place)
            scores[place] = self._spread(gathered, place, made.concepts, made.features, made.best)
        return self._maker.by_concept(gathered, scores, gathered.rows.shape[1])

    def _spread(self, gathered: Gathered, place: int, *made: Any) -> Any:
        """Give every name the score of its concept, the concept's best name a little more."""
        concepts, features, best = made
        line = np.full(gathered.rows.shape[1], -np.inf, np.float32)
        if len(concepts):
            of_concept = self.network.score(features)
            rows = gathered.rows[place]
            there = rows >= 0
            where = np.searchsorted(concepts, self._features.concepts_of(rows[there]))
            line[there] = of_concept[where] - np.float32(1e-4)
            line[best] = of_concept
        return line

    def save(
        self, folder: Path, config: RankerConfig, report: dict[str, Any], *, overwrite: bool = False
    ) -> None:
        """Write the ranker to a folder."""
        with new_folder(folder, overwrite=overwrite) as work:
            self.network.save(work)
            memory = json.dumps(self.memory.to_json(self.kb), ensure_ascii=False)
            (work / MEMORY).write_text(memory, encoding="utf-8")
            manifest = {
                "format": FORMAT,
                "version": VERSION,
                "made_by": f"biograft {biograft.__version__}",
                "store": store_fingerprint(self.kb),
                "config": asdict(config),
                "generators": list(self.generators),
                "features": feature_names(self.generators),
                "report": report,
            }
            (work / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")


def open_trained_ranker(folder: Path, kb: KnowledgeBase) -> TrainedRanker:
    """Open a trained ranker for a store, which need not be the one it was trained with."""
    manifest, memory = _read(folder / MANIFEST), _read(folder / MEMORY)
    if manifest.get("format") != FORMAT:
        raise StoreError(f"{folder}: no trained ranker but {manifest.get('format')!r}")
    if manifest.get("version") != VERSION:
        raise StoreError(
            f"{folder}: version {manifest.get('version')} of the format, this biograft reads "
            f"{VERSION}; train the linker again"
        )
    try:
        generators = [str(name) for name in manifest["generators"]]
        features = list(manifest["features"])
        known = MentionMemory.from_json(memory, kb)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{folder}: damaged ({error!r}); train the linker again") from error
    expected = feature_names(generators)
    if features != expected:
        raise StoreError(f"{folder}: made for other features; train the linker again")
    return TrainedRanker(kb, Network.load(folder, len(expected)), known, generators)


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StoreError(f"{path}: damaged ({error}); train the linker again") from error
    if not isinstance(content, dict):
        raise StoreError(f"{path}: damaged: no object; train the linker again")
    return content
