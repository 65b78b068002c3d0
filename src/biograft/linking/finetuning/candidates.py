"""The candidates of mentions, half by letters and half by the encoder as it stands."""

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
from biograft.linking.finetuning.config import FinetuneConfig
from biograft.linking.finetuning.training_data import FinetuneData, equal_texts
from biograft.linking.lexical.index import LexicalIndex
from biograft.nn import TextEncoder

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class EpochCandidates:
    """The candidates of all data in one epoch."""

    texts: Rows  # (data, k): numbers of names' texts, -1 where there are fewer
    lexical: Scores  # (data, k): how alike in letters; 0 where not known
    gold: Flags  # (data, k)
    found: Flags  # (data,): a gold name was found without being added


class CandidateFinder:
    """Finds the candidates of all data; what depends on letters alone is found once."""

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
        numbers = np.where(rows >= 0, data.names.of_row[rows], -1)
        self._by_letters = [distinct(line) for line in numbers.tolist()]
        self._withheld = [self._equal_to(k) for k in range(len(data))]

    def find(self, last: EpochCandidates | None) -> EpochCandidates:
        """Find candidates with the encoder as it stands; ``last`` are those of the epoch before."""
        n_more = max(map(len, self._withheld), default=0)
        by_encoder = self.nearest(self.pool(last), self.config.k + n_more)
        chosen = [self._choose(k, line) for k, line in enumerate(by_encoder.tolist())]
        gold = [example.gold for example in self.data.examples]
        found = np.array([not own.isdisjoint(line) for own, line in zip(gold, chosen, strict=True)])
        if self.config.missing_gold == "add":
            self._add_gold(chosen, np.flatnonzero(~found).tolist())
        texts = fill_up(chosen, self.config.k)
        flags = np.array([[t in own for t in line]
                          for own, line in zip(gold, texts.tolist(), strict=True)])  # fmt: skip
        return EpochCandidates(texts, self._score(self._mentions, texts), flags, found)

    def pool(self, last: EpochCandidates | None) -> Rows:
        """Give the texts among which the encoder looks, ascending."""
        everything = np.arange(len(self.data.names))
        if self.config.refresh == "full" or (last is None and self.config.first_full):
            return everything
        reachable = np.zeros(len(everything), np.bool_)
        for example, line in zip(self.data.examples, self._by_letters, strict=True):
            reachable[[*example.gold, *line]] = True
        if last is not None:
            reachable[last.texts[last.texts >= 0]] = True
        return np.flatnonzero(reachable)

    def nearest(self, pool: Rows, k: int) -> Rows:
        """Give the k texts of a pool nearest to each mention, best first: (data, k)."""
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
        """Take half by letters, then by the encoder, then by letters what is still missing."""
        n, withheld = self.config.k, self._withheld[k]
        by_letters = [text for text in self._by_letters[k] if text not in withheld]
        nearest = [text for text in by_encoder if text not in withheld]
        return distinct([*by_letters[: n // 2], *nearest, *by_letters])[:n]

    def _equal_to(self, k: int) -> set[int]:
        """Give the texts that a example's mention may not have for candidates."""
        if not self.config.exclude_own_mention:
            return set()
        return equal_texts(self.data.names, self._mentions[k], set(self._by_letters[k]))

    def _add_gold(self, chosen: list[list[int]], missing: Sequence[int]) -> None:
        """Put the gold name most like the mention behind, in place of the last if need be."""
        if not missing:
            return
        golds = [sorted(self.data.examples[k].gold) for k in missing]
        numbers = fill_up(golds, max(map(len, golds)))
        scores = self._score([self._mentions[k] for k in missing], numbers)
        best = np.where(numbers >= 0, scores, -np.inf)
        for k, line, row in zip(missing, best, golds, strict=True):
            # of equal ones the first
            chosen[k] = [*chosen[k][: self.config.k - 1], row[int(line.argmax())]]

    def _score(self, mentions: Sequence[str], numbers: Rows) -> Scores:
        """Score texts by letters; a name that the lexical index does not hold scores 0."""
        rows = np.where(numbers >= 0, self.data.names.first_rows[numbers], -1)
        scores = self._lexical.score(mentions, rows)
        return np.where(np.isfinite(scores), scores, 0).astype(np.float32)


def distinct(numbers: Iterable[int]) -> list[int]:
    """Give each number once, in the order of coming; -1 stands for none."""
    return list(dict.fromkeys(number for number in numbers if number >= 0))


def fill_up(lines: Sequence[Sequence[int]], width: int) -> Rows:
    """Make an array of lines, the shorter ones filled up with -1."""
    filled = np.full((len(lines), width), -1, np.int64)
    for row, line in enumerate(lines):
        filled[row, : len(line)] = line
    return filled


CANDIDATES, VECTORS = "biograft-candidates 1", "biograft-bank 1"
"""Name and version in one: of several entries the order in the file would be left to chance."""
_KINDS = {"texts": np.int64, "lexical": np.float32, "gold": np.bool_, "found": np.bool_}
Arrays: TypeAlias = dict[str, npt.NDArray[Any]]


def path_of(folder: Path, epoch: int) -> Path:
    """Say where the candidates, or vectors, of an epoch are."""
    return folder / f"epoch-{epoch:04d}.safetensors"


def save_candidates(folder: Path, epoch: int, candidates: EpochCandidates) -> None:
    """Write the candidates of an epoch, whole or not at all."""
    _save(path_of(folder, epoch), CANDIDATES, {n: getattr(candidates, n) for n in _KINDS})


def load_candidates(folder: Path, epoch: int, n_examples: int) -> EpochCandidates:
    """Read the candidates of an epoch."""
    return EpochCandidates(**_load(path_of(folder, epoch), CANDIDATES, _KINDS, n_examples))


def save_vectors(folder: Path, epoch: int, vectors: npt.NDArray[np.float16]) -> None:
    """Write the vectors of an epoch's bank, whole or not at all."""
    _save(path_of(folder, epoch), VECTORS, {"vectors": vectors})


def load_vectors(folder: Path, epoch: int, n_names: int) -> npt.NDArray[np.float16]:
    """Read the vectors of an epoch's bank."""
    return _load(path_of(folder, epoch), VECTORS, {"vectors": np.float16}, n_names)["vectors"]


def _save(path: Path, form: str, arrays: Arrays) -> None:
    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    with new_file(path, overwrite=True) as file:
        file.write(save(whole, metadata={"format": form}))


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
class Shard:
    """Which part of every epoch a process reads: the ``rank``-th of ``world``."""

    rank: int = 0
    world: int = 1


class EpochOrder:
    """Lessons shuffled by seed and epoch, and dealt to processes and batches.

    What does not divide among processes is left out of the epoch, so that all have equally many
    batches. The last batch may be smaller.
    """

    def __init__(self, n_examples: int, batch_size: int, seed: int, share: Shard) -> None:
        self.n_examples, self.batch_size, self.seed, self.share = (
            n_examples,
            batch_size,
            seed,
            share,
        )
        self._n_own = n_examples // share.world
        if not self._n_own:
            raise ConfigError(
                f"mentions: {n_examples} are too few for {share.world} processes; use fewer"
            )

    def __len__(self) -> int:
        """How many batches an epoch has for one process."""
        return (self._n_own + self.batch_size - 1) // self.batch_size

    def batches(self, epoch: int, position: int) -> Iterator[Rows]:
        """Give the places of the data of each batch of an epoch from a position on."""
        order = np.random.default_rng([self.seed, epoch]).permutation(self.n_examples)
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

    def _find(self, epoch: int) -> EpochCandidates:
        """Find the candidates of an epoch that begins; every process finds the same."""
        candidates = self.finder.find(self._load(epoch - 1) if epoch else None)
        if self.order.share.rank == 0:
            save_candidates(self.folder, epoch, candidates)
        return candidates

    def _load(self, epoch: int) -> EpochCandidates:
        return load_candidates(self.folder, epoch, len(self.finder.data))

    def _batch(self, candidates: EpochCandidates, rows: Rows) -> CandidateBatch:
        data, texts = self.finder.data, candidates.texts[rows]
        numbers = np.unique(texts[texts >= 0])
        return CandidateBatch(
            mentions=tuple(data.examples[row].text for row in rows.tolist()),
            names=tuple(data.names.take(numbers)),
            places=np.where(texts >= 0, np.searchsorted(numbers, texts), -1),
            lexical=candidates.lexical[rows],
            gold=candidates.gold[rows],
            found=candidates.found[rows],
        )
