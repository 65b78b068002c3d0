"""Mine phrases from plain text: frequent, cohesive, and free to stand beside anything.

Three figures tell a phrase from a chance run or a torn-off part, each in nats. *Cohesion*: the
lowest, over all ways to part the run in two, of log(p(run) / (p(first) p(second))). *Left* and
*right entropy*: how little what stands before or after it can be foretold; a part of a fixed
phrase always has the same neighbour, so its entropy is near 0. The score is
cohesion x lower entropy x log(count).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import numpy as np

from biograft.corpus.segmentation.counting import EDGE, RunCounts, count_runs
from biograft.corpus.segmentation.units import CHINESE, is_number, join, runs
from biograft.corpus.words import FUNCTION_WORDS
from biograft.errors import ConfigError, FormatError, InputError
from biograft.runs import new_file
from biograft.sources.files import read_lines

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
