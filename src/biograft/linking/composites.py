"""Composite mentions, and the names they stand for: *ovarian and breast cancer*."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean

from biograft.kb.names import HAN

Parts = tuple[str, ...]

_AND = r"\s*,?\s+(?:and/or|and|or)\s+"
_CONJUNCTION = re.compile(rf"{_AND}|\s+&\s+", re.IGNORECASE)
_SEPARATOR = re.compile(rf"{_AND}|\s+&\s+|,\s+", re.IGNORECASE)
_SLASH = re.compile(r"(?<=[^\W\d_]{2})\s?/\s?(?=[^\W\d_]{2})")
_PLUS = re.compile(r"(?<=\w)\+(?=\w)|\s\+\s|\s*[＋；]\s*")
_BOTH = re.compile(r"^both\s+", re.IGNORECASE)
_PREPOSITION = re.compile(r"^(.*\s(?:of|in)\s+(?:the\s+)?)(\S.*)$", re.IGNORECASE)
_NUMBER = re.compile(r"\d+[a-z]?|[IVX]+|[ivx]+|[A-Z]", re.ASCII)
_COUNTED = re.compile(r"(types|grades|stages|classes|phases|factors|groups)", re.IGNORECASE)
_WHOLE = re.compile(
    r"(?:\w+(?:itis|oma|osis|emia|uria|algia|pathy|plegia|penia|trophy|rrhea|rrhage|tension|ia)"
    r"|asthma|diabetes|disease|cancer|carcinoma|tumou?r|syndrome|disorder|deficiency|infection"
    r"|failure|injury|pain|fever|lesion|defect|stroke|toxicity|nausea|edema)(?:s|es)?",
    re.IGNORECASE,
)
"""Words that are the head of a name: a mention that ends in one is complete."""

HAN_CONJUNCTION = re.compile(rf"(?<=[{HAN}])(?:以及|和|与|及|或|、)(?=[{HAN}])")
_HAN_HEADS = (
    "综合征",
    "综合症",
    "功能障碍",
    "后遗症",
    "肿瘤",
    "感染",
    "损伤",
    "骨折",
    "出血",
    "溃疡",
    "癌",
    "瘤",
    "炎",
    "病",
    "症",
    "痛",
)


Similarity = Callable[[Sequence[str]], Sequence[float]]
"""Returns how similar the most similar name of a store is to each text: 1 for a name itself."""
MARGIN = 0.05
"""The parts of a composite must be more similar to names than the whole, by this much."""


def split_composite(text: str, similarity: Similarity | None = None) -> Parts:
    """Split a composite mention into the names it stands for; other mentions stay whole.

    Args:
        text: The mention.
        similarity: Similarity of texts to names; without one the likeliest reading is taken.

    >>> split_composite("ovarian and breast cancer")
    ('ovarian cancer', 'breast cancer')
    """
    return split_composites([text], similarity)[0]


def split_composites(texts: Sequence[str], similarity: Similarity | None = None) -> list[Parts]:
    """Split those of some mentions that are composite.

    The reading whose parts are on average the most similar to names is taken, if they are more
    similar than the whole; of equally good readings the first, which is the likeliest.

    Args:
        texts: The mentions.
        similarity: Similarity of texts to names; without one the first reading is taken.
    """
    readings = {text: composite_readings(text) for text in texts}
    if similarity is None:
        return [found[0] if (found := readings[text]) else (text,) for text in texts]
    needed = dict.fromkeys(
        each
        for text, found in readings.items()
        if found
        for parts in [(text,), *found]
        for each in parts
    )
    known = dict(zip(needed, similarity(list(needed)), strict=True)) if needed else {}
    return [_best_reading(text, readings[text], known) for text in texts]


def composite_readings(text: str) -> list[Parts]:
    """Return the ways to split a text into several names, the likeliest first."""
    return [parts for parts in _readings(text) if len(parts) > 1 and all(parts)]


def _best_reading(text: str, readings: Sequence[Parts], known: Mapping[str, float]) -> Parts:
    means = [fmean(known[part] for part in parts) for parts in readings]
    if not means or max(means) <= known[text] + MARGIN:
        return (text,)
    return readings[means.index(max(means))]


def _readings(text: str) -> Iterator[Parts]:
    """Yield the ways to split a text, the likeliest first."""
    text = text.strip()
    if "|" in text or _PLUS.search(text):
        yield _stripped(re.split(rf"\||{_PLUS.pattern}", text))
    elif HAN_CONJUNCTION.search(text):
        yield from _han_readings(_stripped(HAN_CONJUNCTION.split(text)))
    elif _CONJUNCTION.search(text):
        yield from _coordinated(_stripped(_SEPARATOR.split(_BOTH.sub("", text))))
    elif _SLASH.search(text):
        yield from _slashed(text)


def _stripped(parts: list[str]) -> Parts:
    return tuple(part.strip() for part in parts)


def _coordinated(items: Parts) -> Iterator[Parts]:
    """Read *A, B and C*, completing the items by the words that English leaves out."""
    if not all(items):
        return
    yield from _numbered(items)
    yield from _behind_preposition(items)
    *before, last = items
    complete = any(_WHOLE.fullmatch(item.split()[-1]) for item in before)
    if complete:
        yield items
    words = last.split()
    for first in range(len(words) - 1, 0, -1):  # the head that the last item shares
        head = " ".join(words[first:])
        yield (*(f"{item} {head}" for item in before), last)
    if not complete:
        yield items
    begin = items[0].split()
    for stop in range(len(begin) - 1, 0, -1):  # the beginning that the first item shares
        shared = " ".join(begin[:stop])
        yield (items[0], *(f"{shared} {item}" for item in items[1:]))


def _numbered(items: Parts) -> Iterator[Parts]:
    """Read *type 1 and 2 diabetes* and *hepatitis B and C*."""
    *begin, number = items[0].split()
    last, *end = items[-1].split()
    numbers = [number, *items[1:-1], last]
    if not begin or not all(map(_NUMBER.fullmatch, numbers)):
        return
    if _COUNTED.fullmatch(begin[-1]):
        begin[-1] = {"classes": "class"}.get(begin[-1].lower(), begin[-1][:-1])
    yield tuple(" ".join([*begin, item, *end]) for item in numbers)


def _behind_preposition(items: Parts) -> Iterator[Parts]:
    """Read *cancer of the breast and ovary*, unless what follows is complete in itself."""
    match = _PREPOSITION.match(items[0])
    if match and not any(_WHOLE.fullmatch(item.split()[-1]) for item in items[1:]):
        yield (items[0], *(f"{match[1]}{item}" for item in items[1:]))


def _slashed(text: str) -> Iterator[Parts]:
    """Read *colon/rectal cancer*: the words around the slashes are alternatives."""
    items = _SLASH.split(text)
    if len(items) == 2 and " " not in text:
        yield tuple(items)
        return
    begin, first = _cut(items[0], -1)
    last, end = _cut(items[-1], 1)
    options = [first, *items[1:-1], last]
    if not any(" " in option for option in options):
        yield tuple(" ".join(filter(None, [begin, option, end])) for option in options)
    yield tuple(items)


def _cut(text: str, at: int) -> tuple[str, str]:
    words = text.split()
    return " ".join(words[:at]), " ".join(words[at:])


def _han_readings(items: Parts) -> Iterator[Parts]:
    """Read 乳腺和卵巢癌: the items share the head of the last one."""
    *before, last = items
    head = next((head for head in _HAN_HEADS if last.endswith(head) and last != head), "")
    if head and not any(item.endswith(_HAN_HEADS) for item in before):
        yield (*(f"{item}{head}" for item in before), last)
    yield items
