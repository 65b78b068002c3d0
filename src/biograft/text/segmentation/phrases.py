"""Phrase mining: cohesion (pointwise mutual information), branching entropy and learned quality.

Runs of units (n-grams) are counted level by level, with memory that does not grow with the text. As
in Apriori, a run of n units is counted only where its first n - 1 units are frequent. The key of a
run packs the index of its first n - 1 units and its last unit into 64 bits, and is looked up by
bisection. The counts of level n also give the branching entropies of level n - 1. The corpus is a
file of unit ids that is read once per level, in chunks. The ids of units and the index of the run
at each position are temporary files. Forms of units beyond ``max_units`` and runs beyond
``max_entries`` are pruned, the rarest first. Where nothing is pruned, the counts are exact.

The quality of a phrase comes from a random forest trained on known names, as in AutoPhrase (Shang
et al. 2018). Names of the store are positives, all other frequent runs unlabelled: most of them are
no phrases. Each tree learns from as many positives as unlabelled runs, sampled anew, until its
leaves are pure. The few phrases among the unlabelled ones mislead single trees, but not their mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, NamedTuple

import numpy as np

from biograft.arrays import Flags, Floats, Int32s, Ints
from biograft.artifacts import reserve, write_lines
from biograft.errors import ConfigError, FormatError
from biograft.kb.sources.files import read_lines
from biograft.text.name_rules import FUNCTION_WORDS
from biograft.text.segmentation.config import CHINESE, PhraseConfig
from biograft.text.segmentation.words import is_number, join, runs

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


@dataclass(frozen=True)
class RunCounts:
    """Counts of all frequent runs of units up to a length."""

    levels: Sequence[Level]
    n_units: int
    pruned: int
    """Runs that were pruned."""

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
            positions = find_runs(level.keys, positions, column)
        return positions

    def count(self, units: Ints) -> Ints:
        """Return the counts of runs of one length, ``(runs, length)``; 0 if not frequent."""
        positions = self.find(units)
        counts, known = np.zeros(len(units), np.int64), positions >= 0
        if known.any():
            counts[known] = self.levels[units.shape[1] - 1].counts[positions[known]]
        return counts

    def features(self, length: int) -> Floats:
        """Compute what tells phrases from other runs of a length: (runs, features).

        The features are the logarithm of the count, cohesion, both entropies, the mean rarity of
        the units (-log p), the length, and how rarely the run is part of a longer one.
        """
        level, units = self.levels[length - 1], self.units_of(length)
        of_units = np.stack([self.count(column[:, None]) for column in units.T], axis=1)
        rarity = -np.log(np.maximum(of_units, 1) / max(1, self.n_units)).mean(axis=1)
        columns = (
            np.log(level.counts),
            self.cohesion(length),
            level.left,
            level.right,
            rarity,
            np.full(len(units), float(length)),
            1 - self._longest(length) / level.counts,
        )
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


def count_runs(corpus: Int32s, n_kinds: int, config: PhraseConfig) -> RunCounts:
    """Count the runs of up to ``max_length`` units that occur ``min_count`` times or more.

    ``max_entries`` bounds the table of a level: if it has more different runs, the rarest are
    pruned, and counts near ``min_count`` and entropies become approximate.

    Args:
        corpus: Ids of units, with edges between runs.
        n_kinds: The largest id.
        config: The thresholds.
    """
    counts = _count_units(corpus, n_kinds)
    n_units, pruned = int(counts.sum()), 0
    keys = np.flatnonzero(counts >= config.min_count).astype(np.int64)
    counts = counts[keys]
    of_unit = np.full(n_kinds + 1, -1, np.int32)
    of_unit[keys] = np.arange(len(keys))
    levels: list[Level] = []
    with TemporaryFile() as file:
        file.truncate(corpus.nbytes)
        reserve(file)
        positions = np.memmap(file, np.int32, "r+")  # the index of the run at each; -1 if none
        for start in range(0, len(corpus), _CHUNK):
            positions[start : start + _CHUNK] = of_unit[corpus[start : start + _CHUNK]]
        for length in range(1, config.max_length + 1):
            left, right = _CountTable(config.max_entries), _CountTable(config.max_entries)
            for at in _known(positions):
                runs_there = positions[at].astype(np.int64) << _UNIT_BITS
                for table, beside in ((left, at - 1), (right, at + length)):
                    units = corpus[beside].astype(np.int64)
                    inside = units != EDGE
                    table.add(runs_there[inside] | units[inside])
            levels.append(Level(keys, counts, _entropy(left, counts), _entropy(right, counts)))
            pruned += left.pruned + right.pruned
            if length == config.max_length:
                break
            frequent = right.counts >= config.min_count
            keys, counts = right.keys[frequent], right.counts[frequent]
            for at in _known(positions):
                before = positions[at].astype(np.int64)
                positions[at] = find_runs(keys, before, corpus[at + length].astype(np.int64))
    return RunCounts(levels, n_units, pruned)


def _known(positions: Int32s) -> Iterator[Ints]:
    """Yield the positions of known runs, by chunk."""
    for start in range(0, len(positions), _CHUNK):
        yield start + np.flatnonzero(positions[start : start + _CHUNK] >= 0)


def find_runs(keys: Ints, before: Ints, units: Ints) -> Ints:
    """Look up the runs of a level by their first n - 1 units and their last.

    Args:
        keys: The keys of the level.
        before: The indices of the first n - 1 units in the level below; -1 if not frequent.
        units: The last units.

    Returns:
        The index of each run in its level; -1 if it is not frequent.
    """
    if not len(keys):
        return np.full(len(units), -1, np.int64)
    wanted = before << _UNIT_BITS | units
    positions = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where((keys[positions] == wanted) & (before >= 0), positions, -1)


def _count_units(corpus: Int32s, n_kinds: int) -> Ints:
    counts = np.zeros(n_kinds + 1, np.int64)
    for start in range(0, len(corpus), _CHUNK):
        counts += np.bincount(corpus[start : start + _CHUNK], minlength=n_kinds + 1)
    counts[EDGE] = 0
    return counts


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

    Args:
        file: File to write.
        max_units: Number of forms that are remembered.
    """

    def __init__(self, file: IO[bytes], max_units: int) -> None:
        self._file, self._max_units = file, max_units
        self.ids: dict[str, int] = {}
        self.n_ids, self.pruned = 0, 0

    def write(
        self, documents: Iterable[str], language: str, advance: Callable[[int], None]
    ) -> None:
        """Write all documents.

        Args:
            documents: Their texts.
            language: Their language.
            advance: Is called with 1 after each.
        """
        self._file.write(np.array([EDGE], np.int32).tobytes())
        for text in documents:
            line: list[int] = []
            for run in runs(text, language):
                for unit in run:
                    if unit.form not in self.ids:
                        self.n_ids += 1
                        self.ids[unit.form] = self.n_ids
                    line.append(self.ids[unit.form])
                line.append(EDGE)
            self._file.write(np.array(line, np.int32).tobytes())
            if len(self.ids) > self._max_units:
                self._prune()
            advance(1)
        self._file.write(np.array([EDGE], np.int32).tobytes())
        self._file.flush()

    def _prune(self) -> None:
        """Forget the rarest forms until half of the allowed number are left."""
        self._file.flush()
        counts = _count_units(np.memmap(self._file, np.int32, "r"), self.n_ids)
        max_pruned, before = 1, len(self.ids)
        while len(self.ids) > max(1, self._max_units // 2):
            rare = [form for form, n in self.ids.items() if counts[n] <= max_pruned]
            for form in rare:
                del self.ids[form]
            max_pruned += 1
        self.ids = dict(self.ids)  # a smaller table
        self.pruned += before - len(self.ids)


N_TREES = 200
SAMPLE_SIZE = 100
"""Positives, and as many unlabelled runs, that a tree learns from."""
MIN_POSITIVES = 10
"""With fewer names among the runs of a corpus, nothing is learned."""


class Tree(NamedTuple):
    """A node of a decision tree, and those below it; a leaf has no children."""

    value: float
    """The ratio of positives among the training examples of the node."""
    feature: int = 0
    """The feature that the node splits by."""
    threshold: float = 0.0
    """Values up to it go left."""
    children: tuple[Tree, ...] = ()

    def add_values(self, features: Floats, rows: Ints, total: Floats) -> None:
        """Add to a total the value of the leaf of each of some rows.

        Args:
            features: The features of all rows: (features, rows).
            rows: The rows that reach this node.
            total: The sum of each row.
        """
        if not self.children:
            total[rows] += self.value
            return
        right = features[self.feature][rows] > self.threshold
        for child, side in zip(self.children, (~right, right), strict=True):
            child.add_values(features, rows[side], total)


def fit_forest(positive: Floats, unlabelled: Floats) -> list[Tree]:
    """Fit trees to the features (runs, features) of names and of other runs.

    Args:
        positive: Features of names: (runs, features).
        unlabelled: Features of other runs: (runs, features).
    """
    rng, labels = np.random.default_rng(0), np.repeat([True, False], SAMPLE_SIZE)
    trees = []
    for _ in range(N_TREES):
        sampled = [
            rows[rng.integers(len(rows), size=SAMPLE_SIZE)] for rows in (positive, unlabelled)
        ]
        trees.append(grow_tree(np.concatenate(sampled), labels, rng))
    return trees


def grow_tree(features: Floats, labels: Flags, rng: np.random.Generator) -> Tree:
    """Grow a tree until its leaves are pure; each split is chosen among some random features.

    Args:
        features: Those of the training examples: (examples, features).
        labels: Whether each is a positive.
        rng: Chooses the features that are tried.
    """
    value, split = float(labels.mean()), find_split(features, labels, rng)
    if split is None:
        return Tree(value)
    right = features[:, split[0]] > split[1]
    sides = [grow_tree(features[rows], labels[rows], rng) for rows in (~right, right)]
    return Tree(value, *split, tuple(sides))


def find_split(
    features: Floats, labels: Flags, rng: np.random.Generator
) -> tuple[int, float] | None:
    """Find the feature and threshold with the least Gini impurity; None if there is no use.

    About the square root of the features are tried; more only where none of these can split.

    Args:
        features: Features of the examples: (examples, features).
        labels: Class of each example.
        rng: Chooses the features that are tried.
    """
    if labels.all() or not labels.any():
        return None
    n_features = features.shape[1]
    n_tried = max(1, round(n_features**0.5))
    best: tuple[float, int, float] | None = None
    for tried, column in enumerate(rng.permutation(n_features).tolist()):
        if tried >= n_tried and best is not None:
            break
        found = split_column(features[:, column], labels)
        if found is not None and (best is None or found[0] < best[0]):
            best = (found[0], column, found[1])
    return None if best is None else best[1:]


def split_column(values: Floats, labels: Flags) -> tuple[float, float] | None:
    """Return the impurity and the threshold of the best split of a column; None if it is constant.

    The impurity is the sum of 2 p (1 - p) over both sides, weighted by their sizes.

    Args:
        values: Values of one feature.
        labels: Class of each.
    """
    order = np.argsort(values, kind="stable")
    ascending, positives = values[order], np.cumsum(labels[order])
    ends = np.flatnonzero(ascending[1:] > ascending[:-1])  # last row on the left
    if not len(ends):
        return None
    n, total = len(values), int(positives[-1])
    n_left, left = ends + 1, positives[ends]
    n_right, right = n - n_left, total - left
    impurity = 2 * (left * (n_left - left) / n_left + right * (n_right - right) / n_right) / n
    at = int(np.argmin(impurity))
    low, high = ascending[ends[at]], ascending[ends[at] + 1]
    middle = (low + high) / 2
    return float(impurity[at]), float(low if middle >= high else middle)


COLUMNS = ("phrase", "count", "cohesion", "left_entropy", "right_entropy", "score", "quality")
_FUNCTION_CHARACTERS = frozenset(
    "的了是在和与及或就都而着也还没很又吗呢吧啊么呀嘛哦我你他她它们这那个些什怎哪谁为有不会可以要能请"
    "被把让给对从到于之其该等将已曾并且但若如果因所则即使用做去来说想吃多少几上下"
)
"""Characters that no phrase of interest begins or ends with in general Chinese text."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase with its statistics."""

    text: str
    """Text of the phrase."""
    count: int
    """Number of occurrences."""
    cohesion: float
    """Mutual information of its parts, at the weakest place."""
    left_entropy: float
    """Entropy of the words before it."""
    right_entropy: float
    """Entropy of the words behind it."""
    quality: float | None = None
    """The probability that it is a phrase, as learned from names; None without names."""

    @property
    def score(self) -> float:
        """Cohesion, entropy and frequency in one number, comparable within one corpus."""
        free = min(self.left_entropy, self.right_entropy)
        return self.cohesion * free * math.log(self.count)


@dataclass(frozen=True)
class MinedPhrases:
    """The phrases of a corpus, best first, and the counts of its frequent runs."""

    phrases: list[Phrase]
    n_units: int
    pruned: int
    """Runs that were pruned."""
    pruned_units: int
    """Forms of units that were pruned; a frequent one may have been counted in part."""
    counts: RunCounts
    unit_ids: dict[str, int]

    def count(self, forms: Sequence[str]) -> int:
        """Return how often units are adjacent in the corpus; 0 if less than ``min_count``."""
        unit_ids = [self.unit_ids.get(form, EDGE) for form in forms]
        return 0 if EDGE in unit_ids else int(self.counts.count(np.array([unit_ids], np.int64))[0])


def mine_phrases(
    documents: Iterable[str],
    config: PhraseConfig | None = None,
    *,
    language: str = CHINESE,
    names: Iterable[str] = (),
    advance: Callable[[int], None] | None = None,
) -> MinedPhrases:
    """Find the phrases of a corpus.

    Args:
        documents: The texts of the corpus.
        config: The thresholds.
        language: The language of the texts.
        names: Known names; with them, a classifier learns what phrases are like: the quality.
        advance: Is called with the number of documents read.
    """
    config = config or PhraseConfig()
    with TemporaryFile() as file:
        units = UnitIds(file, config.max_units)
        units.write(documents, language, advance or (lambda _: None))
        counts = count_runs(np.memmap(file, np.int32, "r"), units.n_ids, config)
    frequent = set(counts.levels[0].keys.tolist())
    unit_ids = {form: number for form, number in units.ids.items() if number in frequent}
    forest = fit_quality(counts, unit_ids, names, language)
    if forest is None and config.min_quality:
        raise ConfigError(
            f"min_quality: needs at least {MIN_POSITIVES} names of several units that are frequent "
            "in the text, to learn from; give more text, or set it to 0"
        )
    forms = {index: form for form, index in unit_ids.items()}
    phrases: list[Phrase] = []
    for length in range(2, config.max_length + 1):
        phrases += _choose(counts, forms, config, length, language, forest)
    phrases.sort(key=lambda phrase: (-phrase.score, phrase.text))
    return MinedPhrases(phrases, counts.n_units, counts.pruned, units.pruned, counts, unit_ids)


_MAX_UNLABELLED = 100_000
"""Runs among which unlabelled examples are sampled, of each length."""


def fit_quality(
    counts: RunCounts, unit_ids: dict[str, int], names: Iterable[str], language: str
) -> list[Tree] | None:
    """Fit the classifier of phrases to names; None if fewer than ``MIN_POSITIVES`` are frequent.

    Args:
        counts: The frequent runs of the corpus.
        unit_ids: The ids of their units, by form.
        names: Known names, the positives.
        language: Their language.
    """
    by_length: dict[int, set[tuple[int, ...]]] = {}
    for name in names:
        grouped = runs(name, language)
        ids = tuple(unit_ids.get(unit.form, EDGE) for run in grouped for unit in run)
        if len(grouped) == 1 and 1 < len(ids) <= len(counts.levels) and EDGE not in ids:
            by_length.setdefault(len(ids), set()).add(ids)
    rng, positive, unlabelled = np.random.default_rng(0), [], []
    for length in range(2, len(counts.levels) + 1):
        if not len(counts.levels[length - 1].keys):
            continue
        wanted = np.array(sorted(by_length.get(length, ())), np.int64).reshape(-1, length)
        known = counts.find(wanted)
        is_name = np.zeros(len(counts.levels[length - 1].keys), bool)
        is_name[known[known >= 0]] = True
        features, others = counts.features(length), np.flatnonzero(~is_name)
        if len(others) > _MAX_UNLABELLED:
            others = rng.choice(others, _MAX_UNLABELLED, replace=False)
        positive.append(features[is_name])
        unlabelled.append(features[others])
    if sum(map(len, positive)) < MIN_POSITIVES or not sum(map(len, unlabelled)):
        return None
    return fit_forest(np.concatenate(positive), np.concatenate(unlabelled))


def _choose(
    counts: RunCounts,
    forms: Mapping[int, str],
    config: PhraseConfig,
    length: int,
    language: str,
    forest: Sequence[Tree] | None,
) -> Iterator[Phrase]:
    """Yield the runs of a length that pass all thresholds and may be phrases."""
    level = counts.levels[length - 1]
    if not len(level.keys):
        return
    cohesion = counts.cohesion(length)
    free = np.minimum(level.left, level.right)
    passed = np.flatnonzero((cohesion >= config.min_cohesion) & (free >= config.min_entropy))
    units = counts.units_of(length)[passed]
    qualities: list[float] | list[None] = [None] * len(passed)
    if forest is not None:
        features, total = counts.features(length)[passed].T.copy(), np.zeros(len(passed))
        for tree in forest:
            tree.add_values(features, np.arange(len(passed)), total)
        qualities = (total / len(forest)).tolist()
    for position, row, quality in zip(passed.tolist(), units.tolist(), qualities, strict=True):
        run = [forms[unit] for unit in row if unit in forms]
        good = quality is None or quality >= config.min_quality
        if good and len(run) == length and _may_be_phrase(run, language):
            yield Phrase(
                join(run, language),
                int(level.counts[position]),
                float(cohesion[position]),
                float(level.left[position]),
                float(level.right[position]),
                quality,
            )


def _may_be_phrase(run: list[str], language: str) -> bool:
    outer = _FUNCTION_CHARACTERS if language == CHINESE else FUNCTION_WORDS
    ends = (run[0], run[-1])
    return not any(form in outer for form in ends) and not all(is_number(form) for form in ends)


def write_phrases(phrases: Iterable[Phrase], path: Path, *, overwrite: bool = False) -> None:
    """Write phrases as a table for review.

    Args:
        phrases: Phrases, in the order of the rows.
        path: File to write.
        overwrite: Replace a file that exists.
    """
    rows = (
        f"{p.text}\t{p.count}\t{p.cohesion:.3f}\t{p.left_entropy:.3f}\t{p.right_entropy:.3f}"
        f"\t{p.score:.3f}\t" + ("" if p.quality is None else f"{p.quality:.3f}")
        for p in phrases
    )
    write_lines(path, chain(["\t".join(COLUMNS)], rows), overwrite=overwrite)


def read_phrases(path: Path) -> list[Phrase]:
    """Read a table of phrases; lines that begin with ``#`` are skipped."""
    phrases = []
    for number, line in read_lines(path):
        if not line.strip() or line.startswith("#") or line.split("\t") == list(COLUMNS):
            continue
        text, *values = line.split("\t")
        try:
            count, cohesion, left, right = int(values[0]), *map(float, values[1:4])
            quality = float(values[5]) if values[5] else None
        except (ValueError, IndexError) as error:
            raise FormatError(
                f"expected {len(COLUMNS)} columns: {', '.join(COLUMNS)}",
                path=path,
                line=number,
                text=line,
            ) from error
        phrases.append(Phrase(text, count, cohesion, left, right, quality))
    return phrases
