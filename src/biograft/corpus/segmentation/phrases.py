"""How often runs of units occur in a corpus, and how free what stands beside them is.

Level by level, as in Apriori: a run of n units is counted only where its first n - 1 are frequent,
so that a table holds few more entries than there are frequent runs times what follows them. A run
is a number: that of its first n - 1 units and the last unit, side by side in 64 bits, looked up by
bisection. The counts that make level n also give the branching entropies of level n - 1. The
corpus lies in a file, as numbers of units; it is read once a level, in chunks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import numpy as np
import numpy.typing as npt

from biograft.artifacts import new_file
from biograft.corpus.dictionary import FUNCTION_WORDS
from biograft.corpus.segmentation.words import CHINESE, is_number, join, runs
from biograft.errors import ConfigError, FormatError, InputError
from biograft.sources.files import read_lines

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

EDGE = 0
"""Stands in the corpus where a sign, a blank that parts or the end of a line is."""
_CHUNK = 1 << 22
_UNIT_BITS = 32
_UNIT_MASK = (1 << _UNIT_BITS) - 1


@dataclass(frozen=True)
class Level:
    """The frequent runs of one length, in the order of their keys."""

    keys: Ints  # (place of the first n - 1 units in the level below) << 32 | last unit
    counts: Ints
    left: Floats  # entropies, in nats
    right: Floats

    def find(self, before: Ints, units: Ints) -> Ints:
        """Look up runs by their first n - 1 units and their last; -1 where one is not frequent."""
        if not len(self.keys):
            return np.full(len(units), -1, np.int64)
        wanted = before << _UNIT_BITS | units
        places = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        known = (self.keys[places] == wanted) & (before >= 0)
        return np.where(known, places, -1)


class RunCounts:
    """Counts of all frequent runs of units up to a length."""

    def __init__(self, levels: Sequence[Level], n_units: int, *, pruned: int = 0) -> None:
        self.levels, self.n_units, self.pruned = levels, n_units, pruned

    def units_of(self, length: int) -> Ints:
        """Spell all runs of a length: ``(runs, length)`` numbers of units."""
        places = np.arange(len(self.levels[length - 1].keys))
        columns = []
        for level in reversed(self.levels[:length]):
            keys = level.keys[places]
            columns.append(keys & _UNIT_MASK)
            places = keys >> _UNIT_BITS
        return np.stack(columns[::-1], axis=1)

    def count(self, units: Ints) -> Ints:
        """Give the counts of runs of one length, ``(runs, length)``; 0 if not frequent."""
        places = np.zeros(len(units), np.int64)
        for level, column in zip(self.levels, units.T, strict=False):
            places = level.find(places, column)
        if units.shape[1] > len(self.levels):
            return np.zeros(len(units), np.int64)
        counts = self.levels[units.shape[1] - 1].counts
        return np.where(places >= 0, counts[places], 0) if len(counts) else places * 0

    def cohesion(self, length: int) -> Floats:
        """Give min over splits of log(p(whole) / (p(first part) p(second part))), in nats."""
        units = self.units_of(length)
        own = self.levels[length - 1].counts
        whole = np.log(own / self.n_units)
        least = np.full(len(units), math.inf)
        for cut in range(1, length):
            first, second = self.count(units[:, :cut]), self.count(units[:, cut:])
            # a full table may have let a part go, which cannot be rarer than the whole
            first, second = np.maximum(first, own), np.maximum(second, own)
            apart = np.log(first / self.n_units) + np.log(second / self.n_units)
            least = np.minimum(least, whole - apart)
        return least


def count_runs(
    corpus: npt.NDArray[np.int32],
    n_kinds: int,
    *,
    min_count: int,
    max_length: int,
    max_entries: int,
) -> RunCounts:
    """Count the runs of up to ``max_length`` units that occur ``min_count`` times or more.

    ``max_entries`` bounds the table of a level: when more different runs are met, the rarest are
    let go, and counts near ``min_count`` and entropies become approximate.
    """
    counts = _count_units(corpus, n_kinds)
    n_units = int(counts.sum())
    keys = np.flatnonzero(counts >= min_count).astype(np.int64)
    counts, places = counts[keys], _place_units(corpus, n_kinds, keys)
    levels: list[Level] = []
    pruned = 0
    for length in range(1, max_length + 1):
        right, left = (_Table(max_entries) for _ in range(2))
        for start in range(0, len(corpus), _CHUNK):
            _count_beside(corpus, places, length, start, (left, right))
        entropies = [_entropy(table, counts) for table in (left, right)]
        levels.append(Level(keys, counts, *entropies))
        pruned += left.pruned + right.pruned
        if length == max_length:
            break
        frequent = right.counts >= min_count
        keys, counts = right.keys[frequent], right.counts[frequent]
        _extend(corpus, places, length, Level(keys, counts, *entropies))
    return RunCounts(levels, n_units, pruned=pruned)


def _count_units(corpus: npt.NDArray[np.int32], n_kinds: int) -> Ints:
    counts = np.zeros(n_kinds + 1, np.int64)
    for start in range(0, len(corpus), _CHUNK):
        counts += np.bincount(corpus[start : start + _CHUNK], minlength=n_kinds + 1)
    counts[EDGE] = 0
    return counts


def _place_units(corpus: npt.NDArray[np.int32], n_kinds: int, kept: Ints) -> npt.NDArray[np.int32]:
    """Say for each place of the corpus which of the kept units stands there; -1: none."""
    of_unit = np.full(n_kinds + 1, -1, np.int32)
    of_unit[kept] = np.arange(len(kept))
    places = np.empty(len(corpus), np.int32)
    for start in range(0, len(corpus), _CHUNK):
        places[start : start + _CHUNK] = of_unit[corpus[start : start + _CHUNK]]
    return places


class _Table:
    """Counts by key, sorted; it forgets the rarest where it grows too large."""

    def __init__(self, max_entries: int) -> None:
        self.keys, self.counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.max_entries, self.pruned = max_entries, 0

    def add(self, keys: Ints) -> None:
        fresh, counts = np.unique(keys, return_counts=True)
        if len(self.keys):
            together, where = np.unique(np.concatenate([self.keys, fresh]), return_inverse=True)
            summed = np.zeros(len(together), np.int64)
            summed[where[: len(self.keys)]] = self.counts
            summed[where[len(self.keys) :]] += counts
            fresh, counts = together, summed
        least = 1
        while len(fresh) > self.max_entries:
            keep = counts > least
            self.pruned += len(fresh) - int(keep.sum())
            fresh, counts, least = fresh[keep], counts[keep], least + 1
        self.keys, self.counts = fresh, counts


def _count_beside(
    corpus: npt.NDArray[np.int32],
    places: npt.NDArray[np.int32],
    length: int,
    start: int,
    tables: tuple[_Table, _Table],
) -> None:
    """Count what stands left and right of the known runs that begin in a chunk."""
    at = start + np.flatnonzero(places[start : start + _CHUNK] >= 0)
    runs = places[at].astype(np.int64) << _UNIT_BITS
    for table, beside in zip(tables, (at - 1, at + length), strict=True):
        units = corpus[beside].astype(np.int64)
        inside = units != EDGE
        table.add(runs[inside] | units[inside])


def _extend(
    corpus: npt.NDArray[np.int32], places: npt.NDArray[np.int32], length: int, level: Level
) -> None:
    """Turn the places of runs of a length into those of the runs one longer, chunk by chunk."""
    for start in range(0, len(corpus), _CHUNK):
        at = start + np.flatnonzero(places[start : start + _CHUNK] >= 0)
        places[at] = level.find(places[at].astype(np.int64), corpus[at + length].astype(np.int64))


def _entropy(table: _Table, counts: Ints) -> Floats:
    """Branching entropy of each run; each edge counts as a neighbour of its own kind.

    With N occurrences of the run, H = log N - sum(c log c) / N over the neighbours' counts c; an
    edge has c = 1 and adds nothing to the sum.
    """
    spread = np.zeros(len(counts))
    np.add.at(spread, table.keys >> _UNIT_BITS, table.counts * np.log(table.counts))
    return np.asarray(np.maximum(np.log(counts) - spread / counts, 0))


COLUMNS = ("phrase", "count", "cohesion", "left_entropy", "right_entropy", "score")
_FUNCTION_CHARACTERS = frozenset(
    "的了是在和与及或就都而着也还没很又吗呢吧啊么呀嘛哦我你他她它们这那个些什怎哪谁为有不会可以要能请"
    "被把让给对从到于之其该等将已曾并且但若如果因所则即使用做去来说想吃多少几上下"
)
"""Characters that no phrase of interest begins or ends with in everyday Chinese text."""


@dataclass(frozen=True, kw_only=True)
class PhraseConfig:
    """What counts as a phrase."""

    min_count: int = 8
    """Occurrences needed."""
    max_length: int = 6
    """Units (characters in Chinese, else words) of the longest phrase."""
    min_cohesion: float = 3.0
    min_entropy: float = 1.5
    max_entries: int = 1 << 25
    """Different runs a table of counts holds before it forgets the rarest; bounds the memory."""

    def __post_init__(self) -> None:
        for name, lowest in (("min_count", 2), ("max_length", 2), ("max_entries", 1)):
            if getattr(self, name) < lowest:
                raise ConfigError(
                    f"{name}: expected {lowest} or more, found {getattr(self, name)!r}"
                )
        for name in ("min_cohesion", "min_entropy"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name}: expected 0 or more, found {getattr(self, name)!r}")


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase with the figures it was chosen by."""

    text: str
    count: int
    cohesion: float
    left_entropy: float
    right_entropy: float

    @property
    def score(self) -> float:
        """Tell how good a phrase it is, compared with others of the same corpus."""
        free = min(self.left_entropy, self.right_entropy)
        return self.cohesion * free * math.log(self.count)


class MinedPhrases:
    """The phrases of a corpus, best first, and counts of everything frequent in it."""

    def __init__(
        self, phrases: list[Phrase], counts: RunCounts, numbers: dict[str, int], language: str
    ) -> None:
        self.phrases, self.n_units, self.pruned = phrases, counts.n_units, counts.pruned
        self._counts, self._numbers, self._language = counts, numbers, language

    def count(self, forms: Sequence[str]) -> int:
        """Say how often units stand side by side in the corpus; 0 if less than ``min_count``."""
        numbers = [self._numbers.get(form, EDGE) for form in forms]
        if EDGE in numbers:
            return 0
        return int(self._counts.count(np.array([numbers], np.int64))[0])


def read_corpus(paths: Iterable[Path]) -> Iterator[str]:
    """Give the documents of text files, one a line, gzipped or plain."""
    for path in paths:
        empty = True
        for _, line in read_lines(path):
            if line.strip():
                empty = False
                yield line
        if empty:
            raise InputError("holds no text", path=path, remedy="one document a line is expected")


def mine_phrases(
    documents: Iterable[str],
    config: PhraseConfig | None = None,
    *,
    language: str = CHINESE,
    advance: Callable[[int], None] | None = None,
) -> MinedPhrases:
    """Find the phrases of a corpus in one pass over it; ``advance`` hears of documents read."""
    config = config or PhraseConfig()
    with TemporaryFile() as file:
        numbers = _spool(documents, language, file, advance or (lambda _: None))
        corpus = np.memmap(file, np.int32, "r")
        counts = count_runs(
            corpus,
            len(numbers),
            min_count=config.min_count,
            max_length=config.max_length,
            max_entries=config.max_entries,
        )
        del corpus
    phrases = [
        phrase
        for length in range(2, config.max_length + 1)
        for phrase in _choose(counts, ["", *numbers], config, (length, language))
    ]
    phrases.sort(key=lambda phrase: (-phrase.score, phrase.text))
    return MinedPhrases(phrases, counts, numbers, language)


def _spool(
    documents: Iterable[str], language: str, file: IO[bytes], advance: Callable[[int], None]
) -> dict[str, int]:
    """Write a corpus as numbers of units with edges between runs; give the numbers."""
    numbers: dict[str, int] = {}
    file.write(np.array([EDGE], np.int32).tobytes())
    for text in documents:
        line: list[int] = []
        for run in runs(text, language):
            line += [numbers.setdefault(unit.form, len(numbers) + 1) for unit in run]
            line.append(EDGE)
        file.write(np.array(line, np.int32).tobytes())
        advance(1)
    file.write(np.array([EDGE], np.int32).tobytes())
    file.flush()
    return numbers


def _choose(
    counts: RunCounts, forms: list[str], config: PhraseConfig, kind: tuple[int, str]
) -> Iterator[Phrase]:
    """Give the runs of a length that pass all limits and begin and end as phrases do."""
    length, language = kind
    level = counts.levels[length - 1]
    if not len(level.keys):
        return
    cohesion = counts.cohesion(length)
    free = np.minimum(level.left, level.right)
    passed = np.flatnonzero((cohesion >= config.min_cohesion) & (free >= config.min_entropy))
    spelled = counts.units_of(length)[passed]
    for place, row in zip(passed.tolist(), spelled.tolist(), strict=True):
        run = [forms[number] for number in row]
        if _may_be_phrase(run, language):
            yield Phrase(
                join(run, language),
                int(level.counts[place]),
                *(float(column[place]) for column in (cohesion, level.left, level.right)),
            )


def _may_be_phrase(run: list[str], language: str) -> bool:
    outer = _FUNCTION_CHARACTERS if language == CHINESE else FUNCTION_WORDS
    ends = (run[0], run[-1])
    return not any(form in outer for form in ends) and not all(is_number(form) for form in ends)


def write_phrases(phrases: Iterable[Phrase], path: Path, *, overwrite: bool = False) -> None:
    """Write phrases as a table for people to read and cut lines from."""
    with new_file(path, overwrite=overwrite) as file:
        file.write(("\t".join(COLUMNS) + "\n").encode())
        for phrase in phrases:
            figures = (phrase.cohesion, phrase.left_entropy, phrase.right_entropy, phrase.score)
            numbers = "\t".join(f"{figure:.3f}" for figure in figures)
            file.write(f"{phrase.text}\t{phrase.count}\t{numbers}\n".encode())


def read_phrases(path: Path) -> list[Phrase]:
    """Read a table of phrases; lines that begin with ``#`` say nothing."""
    phrases = []
    for number, line in read_lines(path):
        if not line.strip() or line.startswith("#") or line.split("\t") == list(COLUMNS):
            continue
        text, *figures = line.split("\t")
        try:
            count, cohesion, left, right = int(figures[0]), *map(float, figures[1:4])
        except (ValueError, IndexError) as error:
            raise FormatError(
                f"expected {len(COLUMNS)} columns: {', '.join(COLUMNS)}",
                path=path,
                line=number,
                text=line,
            ) from error
        phrases.append(Phrase(text, count, cohesion, left, right))
    return phrases
