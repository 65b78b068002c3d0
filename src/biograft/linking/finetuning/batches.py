"""Batches of mentions with their candidates, found anew at the start of each epoch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from biograft.errors import ConfigError
from biograft.linking.candidates import Rows, Scores
from biograft.linking.finetuning.candidates import CandidateFinder, Candidates, Flags
from biograft.linking.finetuning.keeping import load_candidates, save_candidates


@dataclass(frozen=True, slots=True)
class CandidateBatch:
    """Mentions, the distinct names that are candidates of any, and which are whose."""

    mentions: tuple[str, ...]
    names: tuple[str, ...]
    places: Rows  # (mentions, k): place among the names, -1: none
    lexical: Scores  # (mentions, k)
    gold: Flags  # (mentions, k)
    found: Flags  # (mentions,)

    def __len__(self) -> int:
        return len(self.mentions)


@dataclass(frozen=True, slots=True)
class Share:
    """Which part of every epoch a process reads: the ``rank``-th of ``world``."""

    rank: int = 0
    world: int = 1


class EpochOrder:
    """Lessons shuffled by seed and epoch, and dealt to processes and batches.

    What does not divide among processes is left out of the epoch, so that all have equally many
    batches. The last batch may be smaller.
    """

    def __init__(self, n_lessons: int, batch_size: int, seed: int, share: Share) -> None:
        self.n_lessons, self.batch_size, self.seed, self.share = n_lessons, batch_size, seed, share
        self._n_own = n_lessons // share.world
        if not self._n_own:
            raise ConfigError(
                f"mentions: {n_lessons} are too few for {share.world} processes; use fewer"
            )

    def __len__(self) -> int:
        """How many batches an epoch has for one process."""
        return (self._n_own + self.batch_size - 1) // self.batch_size

    def batches(self, epoch: int, position: int) -> Iterator[Rows]:
        """Give the places of the lessons of each batch of an epoch from a position on."""
        order = np.random.default_rng([self.seed, epoch]).permutation(self.n_lessons)
        order = order[self.share.rank : self._n_own * self.share.world : self.share.world]
        for start in range(position * self.batch_size, len(order), self.batch_size):
            yield order[start : start + self.batch_size]


class CandidateBatches:
    """Batches that can be taken up anywhere: each epoch's candidates are kept in ``folder``."""

    def __init__(self, finder: CandidateFinder, folder: Path, order: EpochOrder) -> None:
        self.finder, self.folder, self.order = finder, folder, order

    def __len__(self) -> int:
        return len(self.order)

    def batches(self, epoch: int, position: int = 0) -> Iterator[CandidateBatch]:
        """Give the batches of an epoch from a position on."""
        candidates = self._load(epoch) if position else self._find(epoch)
        for places in self.order.batches(epoch, position):
            yield self._batch(candidates, places)

    def _find(self, epoch: int) -> Candidates:
        """Find the candidates of an epoch that begins; every process finds the same."""
        candidates = self.finder.find(self._load(epoch - 1) if epoch else None)
        if self.order.share.rank == 0:
            save_candidates(self.folder, epoch, candidates)
        return candidates

    def _load(self, epoch: int) -> Candidates:
        return load_candidates(self.folder, epoch, len(self.finder.lessons))

    def _batch(self, candidates: Candidates, rows: Rows) -> CandidateBatch:
        lessons, texts = self.finder.lessons, candidates.texts[rows]
        numbers = np.unique(texts[texts >= 0])
        return CandidateBatch(
            mentions=tuple(lessons.lessons[row].text for row in rows.tolist()),
            names=tuple(lessons.names.take(numbers)),
            places=np.where(texts >= 0, np.searchsorted(numbers, texts), -1),
            lexical=candidates.lexical[rows],
            gold=candidates.gold[rows],
            found=candidates.found[rows],
        )
