"""The candidates of mentions, half by letters and half by the encoder as it stands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from biograft.linking.candidates import Rows, Scores
from biograft.linking.dense.building import encode
from biograft.linking.dense.config import DenseConfig
from biograft.linking.dense.search import ExactSearch
from biograft.linking.dense.vectors import VectorTable
from biograft.linking.finetuning.config import FinetuneConfig
from biograft.linking.finetuning.lessons import Lessons, equal_texts
from biograft.linking.lexical.index import LexicalIndex
from biograft.nn import TextEncoder

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Candidates:
    """The candidates of all lessons in one epoch."""

    texts: Rows  # (lessons, k): numbers of names' texts, -1 where there are fewer
    lexical: Scores  # (lessons, k): how alike in letters; 0 where not known
    gold: Flags  # (lessons, k)
    found: Flags  # (lessons,): a gold name was found without being added


class CandidateFinder:
    """Finds the candidates of all lessons; what depends on letters alone is found once."""

    def __init__(
        self,
        lessons: Lessons,
        lexical: LexicalIndex,
        encoder: TextEncoder,
        config: FinetuneConfig,
    ) -> None:
        self.lessons, self.config = lessons, config
        self._lexical, self._encoder = lexical, encoder
        self._mentions = [lesson.text for lesson in lessons.lessons]
        n_names = max(config.reach, config.k)
        rows = lexical.search(self._mentions, n_names).rows
        numbers = np.where(rows >= 0, lessons.names.of_row[rows], -1)
        self._by_letters = [distinct(line) for line in numbers.tolist()]
        self._withheld = [self._equal_to(k) for k in range(len(lessons))]

    def find(self, last: Candidates | None) -> Candidates:
        """Find candidates with the encoder as it stands; ``last`` are those of the epoch before."""
        n_more = max(map(len, self._withheld), default=0)
        by_encoder = self.nearest(self.pool(last), self.config.k + n_more)
        chosen = [self._choose(k, line) for k, line in enumerate(by_encoder.tolist())]
        gold = [lesson.gold for lesson in self.lessons.lessons]
        found = np.array([not own.isdisjoint(line) for own, line in zip(gold, chosen, strict=True)])
        if self.config.missing_gold == "add":
            self._add_gold(chosen, np.flatnonzero(~found).tolist())
        texts = fill_up(chosen, self.config.k)
        flags = np.array([[t in own for t in line]
                          for own, line in zip(gold, texts.tolist(), strict=True)])  # fmt: skip
        return Candidates(texts, self._score(self._mentions, texts), flags, found)

    def pool(self, last: Candidates | None) -> Rows:
        """Give the texts among which the encoder looks, ascending."""
        everything = np.arange(len(self.lessons.names))
        if self.config.refresh == "full" or (last is None and self.config.first_full):
            return everything
        reachable = np.zeros(len(everything), np.bool_)
        for lesson, line in zip(self.lessons.lessons, self._by_letters, strict=True):
            reachable[[*lesson.gold, *line]] = True
        if last is not None:
            reachable[last.texts[last.texts >= 0]] = True
        return np.flatnonzero(reachable)

    def nearest(self, pool: Rows, k: int) -> Rows:
        """Give the k texts of a pool nearest to each mention, best first: (lessons, k)."""
        config = DenseConfig(
            similarity=self.config.marginal.similarity,
            batch_size=self.config.encode_batch,
            precision=self.config.training.precision,
        )
        vectors = encode(self._encoder, config, self.lessons.names.take(pool))
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
        """Give the texts that a lesson's mention may not have for candidates."""
        if not self.config.exclude_own_mention:
            return set()
        return equal_texts(self.lessons.names, self._mentions[k], set(self._by_letters[k]))

    def _add_gold(self, chosen: list[list[int]], missing: Sequence[int]) -> None:
        """Put the gold name most like the mention behind, in place of the last if need be."""
        if not missing:
            return
        golds = [sorted(self.lessons.lessons[k].gold) for k in missing]
        numbers = fill_up(golds, max(map(len, golds)))
        scores = self._score([self._mentions[k] for k in missing], numbers)
        best = np.where(numbers >= 0, scores, -np.inf)
        for k, line, row in zip(missing, best, golds, strict=True):
            # of equal ones the first
            chosen[k] = [*chosen[k][: self.config.k - 1], row[int(line.argmax())]]

    def _score(self, mentions: Sequence[str], numbers: Rows) -> Scores:
        """Score texts by letters; a name that the lexical index does not hold scores 0."""
        rows = np.where(numbers >= 0, self.lessons.names.first_rows[numbers], -1)
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
