"""Phrase mining: cohesion (pointwise mutual information), branching entropy and learned quality."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np
import numpy.typing as npt

from biograft.artifacts import new_file
from biograft.errors import ConfigError, FormatError
from biograft.kb.sources.files import read_lines
from biograft.text.name_rules import FUNCTION_WORDS
from biograft.text.segmentation.config import CHINESE, PhraseConfig
from biograft.text.segmentation.quality import MIN_POSITIVES, PhraseForest
from biograft.text.segmentation.run_counts import EDGE, RunCounts, UnitIds, count_runs
from biograft.text.segmentation.words import is_number, join, runs

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

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
    count: int
    cohesion: float
    left_entropy: float
    right_entropy: float
    quality: float | None = None
    """The probability that it is a phrase, as learned from names; None without names."""

    @property
    def score(self) -> float:
        """Cohesion, entropy and frequency in one number, comparable within one corpus."""
        free = min(self.left_entropy, self.right_entropy)
        return self.cohesion * free * math.log(self.count)


class MinedPhrases:
    """The phrases of a corpus, best first, and the counts of its frequent runs."""

    def __init__(
        self, phrases: list[Phrase], counts: RunCounts, unit_ids: dict[str, int], language: str
    ) -> None:
        self.phrases, self.n_units, self.pruned = phrases, counts.n_units, counts.pruned
        self.pruned_units = 0
        """Forms of units that were pruned; a frequent one may have been counted in part."""
        self._counts, self._unit_ids, self._language = counts, unit_ids, language

    def count(self, forms: Sequence[str]) -> int:
        """Return how often units are adjacent in the corpus; 0 if less than ``min_count``."""
        unit_ids = [self._unit_ids.get(form, EDGE) for form in forms]
        if EDGE in unit_ids:
            return 0
        return int(self._counts.count(np.array([unit_ids], np.int64))[0])


def mine_phrases(
    documents: Iterable[str],
    config: PhraseConfig | None = None,
    *,
    language: str = CHINESE,
    names: Iterable[str] = (),
    advance: Callable[[int], None] | None = None,
) -> MinedPhrases:
    """Find the phrases of a corpus; ``advance`` is called with the number of documents read.

    With known ``names``, a classifier learns from them what phrases are like: the quality.
    """
    config = config or PhraseConfig()
    with TemporaryFile() as file:
        units = UnitIds(file, config.max_units)
        units.write(documents, language, advance or (lambda _: None))
        corpus = np.memmap(file, np.int32, "r")
        counts = count_runs(
            corpus,
            units.n_ids,
            min_count=config.min_count,
            max_length=config.max_length,
            max_entries=config.max_entries,
        )
        del corpus
    unit_ids = units.frequent(counts.levels[0].keys)
    forest = fit_quality(counts, unit_ids, names, language)
    if forest is None and config.min_quality:
        raise ConfigError(
            f"min_quality: needs at least {MIN_POSITIVES} names of several units that are frequent "
            "in the text, to learn from; give more text, or set it to 0"
        )
    forms = {index: form for form, index in unit_ids.items()}
    phrases = [
        phrase
        for length in range(2, config.max_length + 1)
        for phrase in _choose(counts, forms, config, (length, language), forest)
    ]
    phrases.sort(key=lambda phrase: (-phrase.score, phrase.text))
    mined = MinedPhrases(phrases, counts, unit_ids, language)
    mined.pruned_units = units.pruned
    return mined


_MAX_UNLABELLED = 100_000
"""Runs among which unlabelled examples are sampled, of each length."""


def fit_quality(
    counts: RunCounts, unit_ids: dict[str, int], names: Iterable[str], language: str
) -> PhraseForest | None:
    """Fit the classifier of phrases to names; None if fewer than ``MIN_POSITIVES`` are frequent."""
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
    return PhraseForest.fit(np.concatenate(positive), np.concatenate(unlabelled))


def _choose(
    counts: RunCounts,
    forms: Mapping[int, str],
    config: PhraseConfig,
    kind: tuple[int, str],
    forest: PhraseForest | None,
) -> Iterator[Phrase]:
    """Yield the runs of a length that pass all thresholds and may be phrases."""
    length, language = kind
    level = counts.levels[length - 1]
    if not len(level.keys):
        return
    cohesion = counts.cohesion(length)
    free = np.minimum(level.left, level.right)
    passed = np.flatnonzero((cohesion >= config.min_cohesion) & (free >= config.min_entropy))
    units = counts.units_of(length)[passed]
    qualities: list[float] | list[None] = [None] * len(passed)
    if forest is not None:
        qualities = forest.predict(counts.features(length)[passed]).tolist()
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
    """Write phrases as a table for review."""
    with new_file(path, overwrite=overwrite) as file:
        file.write(("\t".join(COLUMNS) + "\n").encode())
        for phrase in phrases:
            values = (phrase.cohesion, phrase.left_entropy, phrase.right_entropy, phrase.score)
            columns = "\t".join(f"{value:.3f}" for value in values)
            columns += "\t" if phrase.quality is None else f"\t{phrase.quality:.3f}"
            file.write(f"{phrase.text}\t{phrase.count}\t{columns}\n".encode())


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
