"""Candidates of training mentions: half by lexical search, half by the current encoder (BioSyn)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from biograft.artifacts import new_file
from biograft.errors import ConfigError, StoreError
from biograft.linking.candidates import Rows, Scores
from biograft.linking.dense.build import encode
from biograft.linking.dense.config import DenseConfig
from biograft.linking.dense.search import ExactSearch, VectorTable
from biograft.linking.lexical.index import LexicalIndex
from biograft.models import TextEncoder
from biograft.training.linkers.finetuning.config import FinetuneConfig
from biograft.training.linkers.finetuning.training_data import FinetuneData, equal_texts

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class EpochCandidates:
    """The candidates of all examples in one epoch."""

    texts: Rows  # (examples, k): indices of names, padded with -1
    lexical: Scores  # (examples, k): lexical scores; 0 if unknown
    gold: Flags  # (examples, k)
    gold_found: Flags  # (examples,): a gold name was found, not added


class CandidateFinder:
    """Finds the candidates of all examples; the lexical search is done once."""

    def __init__(
        self,
        data: FinetuneData,
        lexical: LexicalIndex,
        encoder: TextEncoder,
        config: FinetuneConfig,
    ) -> None:
        self.data, self.config = data, config
        self._lexical, self._encoder = lexical, encoder
        self._mentions = [example.text for example in data.examples]
        n_names = max(config.reach, config.k)
        rows = lexical.search(self._mentions, n_names).rows
        indices = np.where(rows >= 0, data.names.of_row[rows], -1)
        self._lexical_names = [distinct(line) for line in indices.tolist()]
        self._withheld = [self._equal_to(k) for k in range(len(data))]

    def find(self, last: EpochCandidates | None) -> EpochCandidates:
        """Find candidates with the current encoder; ``last`` are those of the previous epoch."""
        n_more = max(map(len, self._withheld), default=0)
        by_encoder = self.nearest(self.pool(last), self.config.k + n_more)
        chosen = [self._choose(k, line) for k, line in enumerate(by_encoder.tolist())]
        gold = [example.gold for example in self.data.examples]
        found = np.array(
            [not names.isdisjoint(line) for names, line in zip(gold, chosen, strict=True)]
        )
        if self.config.missing_gold == "add":
            self._add_gold(chosen, np.flatnonzero(~found).tolist())
        texts = pad_rows(chosen, self.config.k)
        flags = np.array([[t in names for t in line]
                          for names, line in zip(gold, texts.tolist(), strict=True)])  # fmt: skip
        return EpochCandidates(texts, self._score(self._mentions, texts), flags, found)

    def pool(self, last: EpochCandidates | None) -> Rows:
        """Return the names that the encoder searches, ascending."""
        everything = np.arange(len(self.data.names))
        if self.config.refresh == "full" or (last is None and self.config.first_full):
            return everything
        reachable = np.zeros(len(everything), np.bool_)
        for example, line in zip(self.data.examples, self._lexical_names, strict=True):
            reachable[[*example.gold, *line]] = True
        if last is not None:
            reachable[last.texts[last.texts >= 0]] = True
        return np.flatnonzero(reachable)

    def nearest(self, pool: Rows, k: int) -> Rows:
        """Return the k names of a pool nearest to each mention, best first: (examples, k)."""
        config = DenseConfig(
            similarity=self.config.marginal.similarity,
            batch_size=self.config.encode_batch,
            precision=self.config.training.precision,
        )
        vectors = encode(self._encoder, config, self.data.names.take(pool))
        queries = encode(self._encoder, config, self._mentions)
        table = VectorTable("float32", vectors, None)
        hits = ExactSearch(table, table.largest_norm()).search(queries, k)
        return np.where(hits.rows >= 0, pool[hits.rows], -1)

    def _choose(self, k: int, by_encoder: Iterable[int]) -> list[int]:
        """Take half from the lexical search, the rest from the encoder, then lexical ones again."""
        n, withheld = self.config.k, self._withheld[k]
        lexical = [text for text in self._lexical_names[k] if text not in withheld]
        nearest = [text for text in by_encoder if text not in withheld]
        return distinct([*lexical[: n // 2], *nearest, *lexical])[:n]

    def _equal_to(self, k: int) -> set[int]:
        """Return the names equal to a mention, if they are excluded from its candidates."""
        if not self.config.exclude_own_mention:
            return set()
        return equal_texts(self.data.names, self._mentions[k], set(self._lexical_names[k]))

    def _add_gold(self, chosen: list[list[int]], missing: Sequence[int]) -> None:
        """Append the gold name most similar to the mention, replacing the last if necessary."""
        if not missing:
            return
        golds = [sorted(self.data.examples[k].gold) for k in missing]
        indices = pad_rows(golds, max(map(len, golds)))
        scores = self._score([self._mentions[k] for k in missing], indices)
        best = np.where(indices >= 0, scores, -np.inf)
        for k, line, row in zip(missing, best, golds, strict=True):
            # ties go to the first
            chosen[k] = [*chosen[k][: self.config.k - 1], row[int(line.argmax())]]

    def _score(self, mentions: Sequence[str], indices: Rows) -> Scores:
        """Return the lexical scores of names; a name that is not indexed scores 0."""
        rows = np.where(indices >= 0, self.data.names.first_rows[indices], -1)
        scores = self._lexical.score(mentions, rows)
        return np.where(np.isfinite(scores), scores, 0).astype(np.float32)


def distinct(indices: Iterable[int]) -> list[int]:
    """Return the distinct indices in their order, without -1."""
    return list(dict.fromkeys(index for index in indices if index >= 0))


def pad_rows(lines: Sequence[Sequence[int]], width: int) -> Rows:
    """Make an array of lines, padded with -1."""
    padded = np.full((len(lines), width), -1, np.int64)
    for row, line in enumerate(lines):
        padded[row, : len(line)] = line
    return padded


CANDIDATES, VECTORS = "biograft-candidates 2", "biograft-bank 1"
"""Format and version in one entry, since the order of several entries is not deterministic."""
_KINDS = {"texts": np.int64, "lexical": np.float32, "gold": np.bool_, "gold_found": np.bool_}
Arrays: TypeAlias = dict[str, npt.NDArray[Any]]


def path_of(folder: Path, epoch: int) -> Path:
    """Return the file of the candidates, or vectors, of an epoch."""
    return folder / f"epoch-{epoch:04d}.safetensors"


def save_candidates(folder: Path, epoch: int, candidates: EpochCandidates) -> None:
    """Write the candidates of an epoch atomically."""
    _save(path_of(folder, epoch), CANDIDATES, {n: getattr(candidates, n) for n in _KINDS})


def load_candidates(folder: Path, epoch: int, n_examples: int) -> EpochCandidates:
    """Load the candidates of an epoch."""
    return EpochCandidates(**_load(path_of(folder, epoch), CANDIDATES, _KINDS, n_examples))


def save_vectors(folder: Path, epoch: int, vectors: npt.NDArray[np.float16]) -> None:
    """Write the vectors of an epoch's bank atomically."""
    _save(path_of(folder, epoch), VECTORS, {"vectors": vectors})


def load_vectors(folder: Path, epoch: int, n_names: int) -> npt.NDArray[np.float16]:
    """Load the vectors of an epoch's bank."""
    return _load(path_of(folder, epoch), VECTORS, {"vectors": np.float16}, n_names)["vectors"]


def _save(path: Path, form: str, arrays: Arrays) -> None:
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    with new_file(path, overwrite=True) as file:
        file.write(save(contiguous, metadata={"format": form}))


def _load(path: Path, form: str, expected: Mapping[str, type], length: int) -> Arrays:
    try:
        with safe_open(path, "numpy") as file:
            metadata = file.metadata() or {}
            arrays: Arrays = {n: file.get_tensor(n) for n in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise StoreError(
            f"{path}: missing or damaged ({error}); the run cannot go on without it: start it anew"
        ) from error
    if metadata.get("format") != form:
        raise StoreError(
            f"{path}: expected {form!r}, found {metadata.get('format')!r}; start the run anew"
        )
    kinds = {name: array.dtype for name, array in arrays.items()}
    if kinds != expected or any(len(array) != length for array in arrays.values()):
        raise StoreError(f"{path}: does not belong to these mentions; start the run anew")
    return arrays


@dataclass(frozen=True, slots=True)
class CandidateBatch:
    """A batch of mentions, the distinct names of all their candidates, and their labels."""

    mentions: tuple[str, ...]
    names: tuple[str, ...]
    columns: Rows  # (mentions, k): index in ``names``, padded with -1
    lexical: Scores  # (mentions, k)
    gold: Flags  # (mentions, k)
    gold_found: Flags  # (mentions,)

    def __len__(self) -> int:
        return len(self.mentions)


@dataclass(frozen=True, slots=True)
class Shard:
    """The part of every epoch that a process reads: the ``rank``-th of ``world``."""

    rank: int = 0
    world: int = 1


class EpochOrder:
    """Examples shuffled by seed and epoch, and distributed to processes and batches.

    A remainder that does not divide among the processes is dropped, so that all have the same
    number of batches. The last batch may be smaller.
    """

    def __init__(self, n_examples: int, batch_size: int, seed: int, shard: Shard) -> None:
        self.n_examples, self.batch_size, self.seed, self.shard = (
            n_examples,
            batch_size,
            seed,
            shard,
        )
        self._n_own = n_examples // shard.world
        if not self._n_own:
            raise ConfigError(
                f"mentions: {n_examples} are too few for {shard.world} processes; use fewer"
            )

    def __len__(self) -> int:
        """Number of batches of an epoch in one process."""
        return (self._n_own + self.batch_size - 1) // self.batch_size

    def batches(self, epoch: int, position: int, step: int = 1) -> Iterator[Rows]:
        """Yield the indices of every ``step``-th batch of an epoch from a position on."""
        for indices in self.together(epoch, position, step):
            yield indices[self.shard.rank :: self.shard.world]

    def together(self, epoch: int, position: int, step: int = 1) -> Iterator[Rows]:
        """Yield the indices of the batches of all processes, like ``batches``."""
        order = np.random.default_rng([self.seed, epoch]).permutation(self.n_examples)
        order = order[: self._n_own * self.shard.world]
        size = self.batch_size * self.shard.world
        for start in range(position * size, len(order), step * size):
            yield order[start : start + size]


class CandidateBatches:
    """Batches that can resume at any position: an epoch's candidates are kept in ``folder``."""

    def __init__(self, finder: CandidateFinder, folder: Path, order: EpochOrder) -> None:
        self.finder, self.folder, self.order = finder, folder, order

    def __len__(self) -> int:
        return len(self.order)

    def batches(self, epoch: int, position: int = 0) -> Iterator[CandidateBatch]:
        """Yield the batches of an epoch from a position on."""
        candidates = self._load(epoch) if position else self._find(epoch)
        for rows in self.order.batches(epoch, position):
            yield self._batch(candidates, rows)

    def _find(self, epoch: int) -> EpochCandidates:
        """Find the candidates of a new epoch; every process finds the same."""
        candidates = self.finder.find(self._load(epoch - 1) if epoch else None)
        if self.order.shard.rank == 0:
            save_candidates(self.folder, epoch, candidates)
        return candidates

    def _load(self, epoch: int) -> EpochCandidates:
        return load_candidates(self.folder, epoch, len(self.finder.data))

    def _batch(self, candidates: EpochCandidates, rows: Rows) -> CandidateBatch:
        data, texts = self.finder.data, candidates.texts[rows]
        indices = np.unique(texts[texts >= 0])
        return CandidateBatch(
            mentions=tuple(data.examples[row].text for row in rows.tolist()),
            names=tuple(data.names.take(indices)),
            columns=np.where(texts >= 0, np.searchsorted(indices, texts), -1),
            lexical=candidates.lexical[rows],
            gold=candidates.gold[rows],
            gold_found=candidates.gold_found[rows],
        )
