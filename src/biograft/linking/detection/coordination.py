"""Coordinated names in running text: *left and right atrial enlargement*, 乳腺和卵巢癌.

A mention that stands in a coordination is extended to all of it, if the coordination stands for
several names (``linking.composites``) of which one at least is not there word for word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from biograft.documents import Mention
from biograft.linking.composites import HAN_CONJUNCTION, composite_readings
from biograft.text import HAN_CHARACTER

AreNames = Callable[[Sequence[str]], Collection[str]]
"""Returns those of some texts that are names."""

_MAX_BEFORE, _MAX_BEHIND, _MAX_HAN = 5, 3, 6
"""Maximum words, or Chinese characters, that a mention is extended by."""
_WINDOW = 80
_JOINS = re.compile(rf"\b(?:and|or)\b|&|{HAN_CONJUNCTION.pattern}", re.IGNORECASE)
_WORDS = re.compile(r"[^\s,]+")
_ENDS = re.compile(r"[.;:!?。；：！？()（）\n]\s?")


class _Reading(NamedTuple):
    """A span that may be a coordination, and the names that it would stand for."""

    start: int
    end: int
    text: str
    parts: tuple[str, ...]


def join_coordinated(
    texts: Sequence[str], mentions: Sequence[Sequence[Mention]], are_names: AreNames
) -> list[list[Mention]]:
    """Extend the mentions of texts, in text order, to the coordinations that they stand in.

    The new mentions have the names that they stand for as their ``parts``; mentions inside of them
    are left out.
    """
    readings = [
        [list(_readings(text, mention)) for mention in own]
        for text, own in zip(texts, mentions, strict=True)
    ]
    needed = (
        part
        for of_text in readings
        for of_mention in of_text
        for reading in of_mention
        for part in (reading.text, *reading.parts)
    )
    names = are_names(list(dict.fromkeys(needed)))
    return [_join(own, of, names) for own, of in zip(mentions, readings, strict=True)]


def _join(
    mentions: Sequence[Mention], readings: Sequence[Sequence[_Reading]], names: Collection[str]
) -> list[Mention]:
    found: list[Mention] = []
    for mention, own in zip(mentions, readings, strict=True):
        if found and mention.start < found[-1].end:
            continue
        low = found[-1].end if found and found[-1].parts else 0
        right = next(
            (
                reading
                for reading in own
                if reading.start >= low
                and reading.text not in names
                and all(part in names for part in reading.parts)
            ),
            None,
        )
        if right is None:
            found.append(mention)
            continue
        while found and found[-1].end > right.start:  # names do not overlap
            found.pop()
        found.append(
            replace(mention, start=right.start, end=right.end, text=right.text, parts=right.parts)
        )
    return found


def _readings(text: str, mention: Mention) -> Iterator[_Reading]:
    """Yield the readings of the spans around a mention that are not there word for word."""
    for start, end in _spans(text, mention):
        whole = text[start:end]
        for parts in composite_readings(whole):
            if any(part not in whole for part in parts):
                yield _Reading(start, end, whole, parts)


def _spans(text: str, mention: Mention) -> Iterator[tuple[int, int]]:
    """Yield the spans around a mention that may be a coordination, the longest first."""
    low = max(0, mention.start - _WINDOW)
    low = max([low, *(low + end.end() for end in _ENDS.finditer(text[low : mention.start]))])
    if _JOINS.search(text, low, min(mention.end, mention.start + 1)):
        starts = list(_starts(text, low, mention.start))
        for start in starts:
            if _JOINS.search(text, start, mention.start + 1):
                yield start, mention.end
    high = min(len(text), mention.end + _WINDOW)
    stop = _ENDS.search(text, mention.end, high)
    high = stop.start() if stop else high
    behind = re.compile(r"\s*,?\s*(?:and|or|&)\s", re.IGNORECASE).match(text, mention.end, high)
    if behind:
        words = list(_WORDS.finditer(text, behind.end(), high))[:_MAX_BEHIND]
        for word in reversed(words):
            yield mention.start, word.end()


def _starts(text: str, low: int, end: int) -> Iterator[int]:
    """Yield where words before a mention begin; in Chinese, characters."""
    if end and HAN_CHARACTER.match(text[end - 1]):
        yield from range(max(low, end - _MAX_HAN), end)
        return
    words = list(_WORDS.finditer(text, low, end))
    yield from (word.start() for word in words[-_MAX_BEFORE - 1 :])
