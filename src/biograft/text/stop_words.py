"""Names of a store that are ordinary words in text: candidates for a list of stop words.

A name of one word is proposed if it is a listed common or function word, if it stands where verbs
do (*may lead*, *they present*), or if the store writes it in capitals (*IMPACT*) and the text
mostly does not. A person decides which of them to keep.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Annotated

from biograft.artifacts import write_lines
from biograft.config import AtLeast, Config, Range
from biograft.text.name_rules import COMMON_WORDS, FUNCTION_WORDS
from biograft.text.names_index import NamesIndex

_BEFORE_VERBS = frozenset(
    "will would can could cannot may might must shall should do did does i we you they".split()
)
_MIN_VERBS = 2
_PREVIOUS = re.compile(r"([a-z]+)\s+$", re.IGNORECASE)
_REACH = 16
"""Characters before a name in which the previous word is looked for."""
_BATCH = 1000
_HEADER = "# name\toccurrences\tin lower case\tafter *will*, *they*, ...\twhy"


@dataclass(frozen=True, kw_only=True)
class StopWordConfig(Config):
    """Settings of names that are proposed as stop words."""

    min_count: Annotated[int, AtLeast(1)] = 3
    """Occurrences in the text."""
    min_lower: Annotated[float, Range()] = 0.5
    """Ratio of occurrences in lower case; a name that is mostly in capitals is one."""
    min_verbs: Annotated[float, Range()] = 0.02
    """Ratio of occurrences where only verbs stand, for words that are not listed."""


@dataclass(frozen=True, slots=True)
class StopWord:
    """A name that may be an ordinary word, with its counts."""

    name: str
    n: int
    n_lower: int
    n_verbs: int
    why: str
    """``listed``, ``verb`` or ``capitals``."""


def propose_stop_words(
    names: NamesIndex,
    name_of: Callable[[int], str],
    texts: Iterable[str],
    config: StopWordConfig | None = None,
) -> list[StopWord]:
    """Propose stop words by their use in texts, the most frequent first.

    Args:
        names: Index of the names.
        name_of: Returns the name in a row.
        texts: Texts in which their use is counted.
        config: How often, and how, a word is used that is proposed.
    """
    config = config or StopWordConfig()
    n, n_lower, n_verbs, rows = Counter[str](), Counter[str](), Counter[str](), dict[str, int]()
    for word, row, is_lower, is_verb in _occurrences(names, texts):
        n[word] += 1
        n_lower[word] += is_lower
        n_verbs[word] += is_verb
        rows.setdefault(word, row)
    proposed = []
    for word, count in n.items():
        if count < config.min_count or n_lower[word] < config.min_lower * count:
            continue
        if word in COMMON_WORDS or word in FUNCTION_WORDS:
            why = "listed"
        elif n_verbs[word] >= max(config.min_verbs * count, _MIN_VERBS):
            why = "verb"
        elif name_of(rows[word]).isupper():
            why = "capitals"
        else:
            continue
        proposed.append(StopWord(word, count, n_lower[word], n_verbs[word], why))
    return sorted(proposed, key=lambda each: (-each.n, each.name))


def _occurrences(names: NamesIndex, texts: Iterable[str]) -> Iterator[tuple[str, int, bool, bool]]:
    """Yield names of one word, with a row, and whether they are in lower case, and like a verb."""
    for batch in _batches(texts):
        for text, matches in zip(batch, names.find_many(batch), strict=True):
            for match in matches:
                if match.text.isalpha() and match.text.isascii():
                    before = _PREVIOUS.search(text, max(match.start - _REACH, 0), match.start)
                    is_verb = before is not None and before[1].lower() in _BEFORE_VERBS
                    is_lower = match.text.islower()
                    yield match.text.lower(), match.name_rows[0], is_lower, is_verb


def _batches(texts: Iterable[str]) -> Iterator[Sequence[str]]:
    remaining = iter(texts)
    while batch := list(islice(remaining, _BATCH)):
        yield batch


def write_stop_words(words: Iterable[StopWord], path: Path, *, overwrite: bool = False) -> None:
    """Write stop words with their counts, one a line, for ``--stop-file``.

    Args:
        words: Stop words with their counts.
        path: File to write.
        overwrite: Replace a file that exists.
    """
    rows = ("\t".join(map(str, astuple(word))) for word in words)
    write_lines(path, chain([_HEADER], rows), overwrite=overwrite)
