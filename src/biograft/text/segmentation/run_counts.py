"""Counts of runs of units (n-grams), level by level, with memory that does not grow with the text.

As in Apriori, a run of n units is counted only where its first n - 1 units are frequent. The key of
a run packs the index of its first n - 1 units and its last unit into 64 bits, and is looked up by
bisection. The counts of level n also give the branching entropies of level n - 1. The corpus is a
file of unit ids that is read once per level, in chunks.

The ids of units and the index of the run at each position are temporary files. Forms of units
beyond ``max_units`` and runs beyond ``max_entries`` are pruned, the rarest first. Where nothing is
pruned, the counts are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO

import numpy as np
import numpy.typing as npt

from biograft.artifacts import reserve
from biograft.text.segmentation.words import runs

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

EDGE = 0
"""The id of a boundary between runs in the corpus."""
_CHUNK = 1 << 22
_UNIT_BITS = 32
_UNIT_MASK = (1 << _UNIT_BITS) - 1


@dataclass(frozen=True)
class Level:
    """The frequent runs of one length, sorted by key."""

    keys: Ints  # (index of the first n - 1 units in the level below) << 32 | last unit
    counts: Ints
    left: Floats  # entropies, in nats
    right: Floats

    def find(self, before: Ints, units: Ints) -> Ints:
        """Look up runs by their first n - 1 units and their last; -1 if not frequent."""
        if not len(self.keys):
            return np.full(len(units), -1, np.int64)
        wanted = before << _UNIT_BITS | units
        positions = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        known = (self.keys[positions] == wanted) & (before >= 0)
        return np.where(known, positions, -1)


class RunCounts:
    """Counts of all frequent runs of units up to a length."""

    def __init__(self, levels: Sequence[Level], n_units: int, *, pruned: int = 0) -> None:
        self.levels, self.n_units, self.pruned = levels, n_units, pruned

    def units_of(self, length: int) -> Ints:
        """Return the unit ids of all runs of a length, ``(runs, length)``."""
        positions = np.arange(len(self.levels[length - 1].keys))
        columns = []
        for level in reversed(self.levels[:length]):
            keys = level.keys[positions]
            columns.append(keys & _UNIT_MASK)
            positions = keys >> _UNIT_BITS
        return np.stack(columns[::-1], axis=1)

    def find(self, units: Ints) -> Ints:
        """Look up runs of one length, ``(runs, length)``; -1 if not frequent."""
        if units.shape[1] > len(self.levels):
            return np.full(len(units), -1, np.int64)
        positions = np.zeros(len(units), np.int64)
        for level, column in zip(self.levels, units.T, strict=False):
            positions = level.find(positions, column)
        return positions

    def count(self, units: Ints) -> Ints:
        """Return the counts of runs of one length, ``(runs, length)``; 0 if not frequent."""
        positions = self.find(units)
        if units.shape[1] > len(self.levels):
            return np.zeros(len(units), np.int64)
        counts = self.levels[units.shape[1] - 1].counts
        return np.where(positions >= 0, counts[positions], 0) if len(counts) else positions * 0

    def features(self, length: int) -> Floats:
        """Compute what tells phrases from other runs of a length: (runs, features).

        The features are the logarithm of the count, cohesion, both entropies, the mean rarity of
        the units (-log p), the length, and how rarely the run is part of a longer one.
        """
        level, units = self.levels[length - 1], self.units_of(length)
        of_units = np.stack([self.count(column[:, None]) for column in units.T], axis=1)
        rarity = -np.log(np.maximum(of_units, 1) / max(1, self.n_units)).mean(axis=1)
        columns = (
            np.log(level.counts), self.cohesion(length), level.left, level.right, rarity,
            np.full(len(units), float(length)), 1 - self._longest(length) / level.counts,
        )  # fmt: skip
        return np.stack(columns, axis=1)

    def _longest(self, length: int) -> Ints:
        """Return the count of the most frequent run with one more unit around each run."""
        most = np.zeros(len(self.levels[length - 1].keys), np.int64)
        if length < len(self.levels) and len(self.levels[length].keys):
            longer, units = self.levels[length], self.units_of(length + 1)
            last = self.find(units[:, 1:])
            np.maximum.at(most, longer.keys >> _UNIT_BITS, longer.counts)
            np.maximum.at(most, last[last >= 0], longer.counts[last >= 0])
        return most

    def cohesion(self, length: int) -> Floats:
        """Compute min over splits of log(p(whole) / (p(first part) p(second part))), in nats."""
        units = self.units_of(length)
        own = self.levels[length - 1].counts
        whole = np.log(own / self.n_units)
        cohesion = np.full(len(units), math.inf)
        for cut in range(1, length):
            first, second = self.count(units[:, :cut]), self.count(units[:, cut:])
            # a full table may have pruned a part, which cannot be rarer than the whole
            first, second = np.maximum(first, own), np.maximum(second, own)
            independent = np.log(first / self.n_units) + np.log(second / self.n_units)
            cohesion = np.minimum(cohesion, whole - independent)
        return cohesion


def count_runs(
    corpus: npt.NDArray[np.int32],
    n_kinds: int,
    *,
    min_count: int,
    max_length: int,
    max_entries: int,
) -> RunCounts:
    """Count the runs of up to ``max_length`` units that occur ``min_count`` times or more.

    ``max_entries`` bounds the table of a level: if it has more different runs, the rarest are
    pruned, and counts near ``min_count`` and entropies become approximate.
    """
    with TemporaryFile() as file:
        file.truncate(corpus.nbytes)
        reserve(file)
        positions = np.memmap(file, np.int32, "r+")
        return _count_levels(
            corpus, positions, n_kinds, (min_count, max_length), _tables_of(max_entries)
        )


def _tables_of(max_entries: int) -> Callable[[], tuple[_CountTable, _CountTable]]:
    """Return what makes the tables of right and left neighbours of a level."""
    return lambda: (_CountTable(max_entries), _CountTable(max_entries))


def _count_levels(
    corpus: npt.NDArray[np.int32],
    positions: npt.NDArray[np.int32],
    n_kinds: int,
    limits: tuple[int, int],
    make_tables: Callable[[], tuple[_CountTable, _CountTable]],
) -> RunCounts:
    """Count level by level; ``positions`` is filled with the index of the run at each position."""
    min_count, max_length = limits
    counts = _count_units(corpus, n_kinds)
    n_units = int(counts.sum())
    keys = np.flatnonzero(counts >= min_count).astype(np.int64)
    counts = counts[keys]
    _fill_unit_positions(corpus, positions, n_kinds, keys)
    levels: list[Level] = []
    pruned = 0
    for length in range(1, max_length + 1):
        right, left = make_tables()
        for start in range(0, len(corpus), _CHUNK):
            _count_beside(corpus, positions, length, start, (left, right))
        entropies = [_entropy(table, counts) for table in (left, right)]
        levels.append(Level(keys, counts, *entropies))
        pruned += left.pruned + right.pruned
        if length == max_length:
            break
        frequent = right.counts >= min_count
        keys, counts = right.keys[frequent], right.counts[frequent]
        _extend(corpus, positions, length, Level(keys, counts, *entropies))
    return RunCounts(levels, n_units, pruned=pruned)


def _count_units(corpus: npt.NDArray[np.int32], n_kinds: int) -> Ints:
    counts = np.zeros(n_kinds + 1, np.int64)
    for start in range(0, len(corpus), _CHUNK):
        counts += np.bincount(corpus[start : start + _CHUNK], minlength=n_kinds + 1)
    counts[EDGE] = 0
    return counts


def _fill_unit_positions(
    corpus: npt.NDArray[np.int32], positions: npt.NDArray[np.int32], n_kinds: int, kept: Ints
) -> None:
    """Write the index of the kept unit at each position of the corpus; -1 if none."""
    of_unit = np.full(n_kinds + 1, -1, np.int32)
    of_unit[kept] = np.arange(len(kept))
    for start in range(0, len(corpus), _CHUNK):
        positions[start : start + _CHUNK] = of_unit[corpus[start : start + _CHUNK]]


class _CountTable:
    """Counts by key, sorted; prunes the rarest when it grows too large."""

    def __init__(self, max_entries: int) -> None:
        self.keys, self.counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.max_entries, self.pruned = max_entries, 0

    def add(self, keys: Ints) -> None:
        fresh, counts = np.unique(keys, return_counts=True)
        places = np.searchsorted(self.keys, fresh)
        known = places < len(self.keys)
        known[known] = self.keys[places[known]] == fresh[known]
        self.counts[places[known]] += counts[known]
        new = ~known
        self.keys = np.insert(self.keys, places[new], fresh[new])
        self.counts = np.insert(self.counts, places[new], counts[new])
        max_pruned = 1
        while len(self.keys) > self.max_entries:
            keep = self.counts > max_pruned
            self.pruned += len(self.keys) - int(keep.sum())
            self.keys, self.counts = self.keys[keep], self.counts[keep]
            max_pruned += 1


def _count_beside(
    corpus: npt.NDArray[np.int32],
    positions: npt.NDArray[np.int32],
    length: int,
    start: int,
    tables: tuple[_CountTable, _CountTable],
) -> None:
    """Count the left and right neighbours of the known runs that begin in a chunk."""
    at = start + np.flatnonzero(positions[start : start + _CHUNK] >= 0)
    runs = positions[at].astype(np.int64) << _UNIT_BITS
    for table, beside in zip(tables, (at - 1, at + length), strict=True):
        units = corpus[beside].astype(np.int64)
        inside = units != EDGE
        table.add(runs[inside] | units[inside])


def _extend(
    corpus: npt.NDArray[np.int32], positions: npt.NDArray[np.int32], length: int, level: Level
) -> None:
    """Replace the indices of runs of a length by those of the runs one longer, by chunk."""
    for start in range(0, len(corpus), _CHUNK):
        at = start + np.flatnonzero(positions[start : start + _CHUNK] >= 0)
        positions[at] = level.find(
            positions[at].astype(np.int64), corpus[at + length].astype(np.int64)
        )


def _entropy(table: _CountTable, counts: Ints) -> Floats:
    """Compute the branching entropy of each run; each edge counts as a distinct neighbour.

    With N occurrences of the run, H = log N - sum(c log c) / N over the neighbours' counts c; an
    edge has c = 1 and adds nothing to the sum.
    """
    spread = np.zeros(len(counts))
    for start in range(0, len(table.keys), _CHUNK):
        some = table.counts[start : start + _CHUNK]
        np.add.at(spread, table.keys[start : start + _CHUNK] >> _UNIT_BITS, some * np.log(some))
    return np.asarray(np.maximum(np.log(counts) - spread / counts, 0))


class UnitIds:
    """Writes a corpus as unit ids with edges between runs; knows the ids of its units.

    Of too many forms the rarest so far are forgotten. One that comes again has a new id, and is
    counted from there (lossy counting).
    """

    def __init__(self, file: IO[bytes], max_units: int) -> None:
        self._file, self._max_units = file, max_units
        self._ids: dict[str, int] = {}
        self.n_ids, self.pruned = 0, 0

    def write(
        self, documents: Iterable[str], language: str, advance: Callable[[int], None]
    ) -> None:
        """Write all documents."""
        self._file.write(np.array([EDGE], np.int32).tobytes())
        for text in documents:
            line: list[int] = []
            for run in runs(text, language):
                line += [self._id_of(unit.form) for unit in run]
                line.append(EDGE)
            self._file.write(np.array(line, np.int32).tobytes())
            if len(self._ids) > self._max_units:
                self._prune()
            advance(1)
        self._file.write(np.array([EDGE], np.int32).tobytes())
        self._file.flush()

    def frequent(self, ids: Ints) -> dict[str, int]:
        """Return the forms with one of some ids."""
        wanted = set(ids.tolist())
        return {form: number for form, number in self._ids.items() if number in wanted}

    def _id_of(self, form: str) -> int:
        number = self._ids.get(form)
        if number is None:
            self.n_ids += 1
            number = self._ids[form] = self.n_ids
        return number

    def _prune(self) -> None:
        """Forget the rarest forms until half of the allowed number are left."""
        self._file.flush()
        counts = _count_units(np.memmap(self._file, np.int32, "r"), self.n_ids)
        max_pruned, before = 1, len(self._ids)
        while len(self._ids) > max(1, self._max_units // 2):
            rare = [form for form, n in self._ids.items() if counts[n] <= max_pruned]
            for form in rare:
                del self._ids[form]
            max_pruned += 1
        self._ids = dict(self._ids)  # a smaller table
        self.pruned += before - len(self._ids)
