"""Search Chinese names by pinyin without tones (*gaoxueya*), or by its initials (*gxy*).

All names are spelt in one text, a line a name, each syllable with a capital: *GaoXueYa*. A query
is found in it, in lower case, where a syllable begins; the capitals alone are the initials. A
character with several readings gives the name a line for each of them. The readings are those of
the package pypinyin (extra ``zh``); without it nothing is found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from itertools import accumulate
from typing import TYPE_CHECKING
from unicodedata import combining, normalize

import numpy as np

from biograft.kb.names import HAN_CHARACTER

if TYPE_CHECKING:
    from biograft.kb.store import KnowledgeBase

_QUERY = re.compile("[a-z][a-z0-9]+")
_NO_QUERY = re.compile(r"[\s'’-]+")
_MAX_READINGS = 3
_MAX_FOUND = 500
"""Places of a query that are ranked, at the beginning of names, and inside."""


class PinyinNames:
    """Finds the names of a knowledge base that have Chinese characters, by pinyin or its initials.

    Args:
        names: Numbers of the names, and their texts.

    >>> PinyinNames([(0, "高血压"), (1, "重症高血压")]).find("gxy")  # doctest: +SKIP
    [0, 1]
    """

    def __init__(self, names: Iterable[tuple[int, str]]) -> None:
        lines = [(name, line) for name, text in names for line in _spellings(text)]
        self._names = [name for name, _ in lines]
        spelt = "\n".join(["", *(line for _, line in lines), ""])
        initials = re.sub("[a-z]", "", spelt)
        self._texts = [(text, text.lower(), _line_starts(text)) for text in (initials, spelt)]

    @classmethod
    def of(cls, kb: KnowledgeBase) -> PinyinNames:
        """Return the Chinese names of a knowledge base.

        Args:
            kb: The knowledge base.
        """
        is_possible = "zh" in kb.languages and find_spec("pypinyin") is not None
        texts = enumerate(kb.texts("names", "text")) if is_possible else ()
        return cls((row, text) for row, text in texts if HAN_CHARACTER.search(text))

    def find(self, text: str) -> list[int]:
        """Return the numbers of names with a pinyin, those that begin so and short ones first.

        Args:
            text: Pinyin without tones (``v`` for ``ü``), or initials; blanks do not count.
        """
        query = _NO_QUERY.sub("", text.lower())
        if not self._names or not _QUERY.fullmatch(query):
            return []
        ranked: list[tuple[bool, int, int]] = []
        for spelt, lower, starts in self._texts:
            for wanted in (f"\n{query}", query):
                places = list(_places(wanted, lower, spelt))
                lines = np.searchsorted(starts, places, side="right") - 1
                lengths = starts[lines + 1] - starts[lines]
                is_inside = wanted == query
                ranked += [
                    (is_inside, length, self._names[line])
                    for line, length in zip(lines.tolist(), lengths.tolist(), strict=True)
                ]
        return list(dict.fromkeys(name for *_, name in sorted(ranked)))


def _places(wanted: str, lower: str, spelt: str) -> Iterator[int]:
    """Yield where a text is found at the beginning of a syllable, at most so many places."""
    place, n = lower.find(wanted), 0
    while place >= 0 and n < _MAX_FOUND:
        if not spelt[place].islower():
            yield place
            n += 1
        place = lower.find(wanted, place + 1)


def _line_starts(text: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return where lines begin, with the line end before them, and the end."""
    ends = accumulate((len(line) + 1 for line in text.split("\n")[1:]), initial=0)
    return np.fromiter(ends, np.int64)


def _spellings(text: str) -> Iterator[str]:
    """Yield a name in pinyin, and with each further reading of a character."""
    readings = [each for character in text if (each := _readings(character))]
    yield "".join(first for first, *_ in readings)
    for at, (_, *others) in enumerate(readings):
        for other in others:
            yield "".join(
                [*(r[0] for r in readings[:at]), other, *(r[0] for r in readings[at + 1 :])]
            )


@cache
def _readings(character: str) -> tuple[str, ...]:
    """Return the syllables of a character, letters and digits as they are; others have none."""
    if not HAN_CHARACTER.match(character):
        return (character.upper(),) if character.isascii() and character.isalnum() else ()
    from pypinyin.pinyin_dict import pinyin_dict

    toned = pinyin_dict.get(ord(character), "").split(",")
    parts = (normalize("NFD", each).replace("u\u0308", "v") for each in toned)
    letters = ("".join(c for c in each if not combining(c)).title() for each in parts)
    return tuple(filter(None, dict.fromkeys(letters)))[:_MAX_READINGS]
