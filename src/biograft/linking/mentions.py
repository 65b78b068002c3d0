"""The forms that are looked up for a mention.

:func:`split_composite` splits composite mentions (*ovarian and breast cancer*).
:class:`MentionForms` expands abbreviations and splits composites by the names that the store has.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache

from biograft.corpus.abbreviations import LongForms, abbreviates, find_abbreviations
from biograft.documents import Mention
from biograft.kb import KnowledgeBase
from biograft.linking.detection import outside
from biograft.linking.queries import Context, Query
from biograft.text import HAN

Parts = tuple[str, ...]

_AND = r"\s*,?\s+(?:and/or|and|or)\s+"
_CONJUNCTION = re.compile(rf"{_AND}|\s+&\s+", re.IGNORECASE)
_SEPARATOR = re.compile(rf"{_AND}|\s+&\s+|,\s+", re.IGNORECASE)
_SLASH = re.compile(r"(?<=[^\W\d_]{2})\s?/\s?(?=[^\W\d_]{2})")
_PLUS = re.compile(r"(?<=\w)\+(?=\w)|\s\+\s")
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

_HAN_CONJUNCTION = re.compile(rf"(?<=[{HAN}])(?:以及|和|与|及|或|、)(?=[{HAN}])")
_HAN_HEADS = (
    "综合征", "综合症", "功能障碍", "后遗症", "肿瘤", "感染", "损伤", "骨折", "出血", "溃疡",
    "癌", "瘤", "炎", "病", "症", "痛",
)  # fmt: skip


def gold_parts(text: str) -> Parts:
    """Split a mention or gold id set as the benchmarks write them: on ``|`` and ``+`` only."""
    return tuple(text.replace("+", "|").split("|"))


def split_composite(text: str, is_name: Callable[[str], bool] | None = None) -> Parts:
    """Split a composite mention into the names it stands for; other mentions stay whole.

    ``is_name`` returns whether the dictionary has a name. A name of the dictionary is never
    split. The reading with the highest ratio of known names is taken, if any is known; of equally
    good ones the first, which is the likeliest.
    """
    whole = (text,)
    if is_name is not None and is_name(text):
        return whole
    readings = [parts for parts in _readings(text) if len(parts) > 1 and all(parts)]
    if not readings:
        return whole
    if is_name is None:
        return readings[0]
    known = [sum(map(is_name, parts)) / len(parts) for parts in readings]
    best = max(known)
    return readings[known.index(best)] if best else whole


def _readings(text: str) -> Iterator[Parts]:
    """Yield the ways to split a text, the likeliest first."""
    text = text.strip()
    if "|" in text or _PLUS.search(text):
        yield _stripped(re.split(rf"\||{_PLUS.pattern}", text))
    elif _HAN_CONJUNCTION.search(text):
        yield from _han_readings(_stripped(_HAN_CONJUNCTION.split(text)))
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


_CACHE_SIZE = 1 << 16
"""Size of the caches of forms; texts repeat themselves."""
_WORD = re.compile(r"\w+(?:-\w+)*")
_BEGINS, _ENDS = re.compile(r"(?<!\w)(?<!\w-)"), re.compile(r"s?(?!\w)(?!-\w)")
"""Boundaries of a whole word, with an optional plural *s*."""


class MentionForms:
    """The texts to look up for mentions: long forms of abbreviations, parts of composites."""

    def __init__(self, kb: KnowledgeBase, *, abbreviations: bool, composites: bool) -> None:
        self._abbreviations, self._composites = abbreviations, composites
        is_name = lru_cache(_CACHE_SIZE)(lambda text: bool(kb.find(text)))
        split = lru_cache(_CACHE_SIZE)(lambda form: split_composite(form, is_name))
        self._is_name, self._split = is_name, split

    def long_forms(self, text: str, mentions: Iterable[str] = ()) -> LongForms:
        """Collect the abbreviations of a document, if they are to be expanded.

        They are those that the text defines, and mentions that are no name of the store but
        abbreviate another mention of the document.
        """
        if not self._abbreviations:
            return LongForms(())
        texts = list(dict.fromkeys(mentions))
        short = [t for t in texts if " " not in t and not self._is_name(t)]
        bare = {s: long for s in short for long in texts[::-1] if abbreviates(s, long)}
        return LongForms(find_abbreviations(text), bare)

    def of(self, mention: Mention, long_forms: LongForms) -> Parts:
        """Return the texts to look up for a mention."""
        form = long_forms.expand(mention.text) or mention.text
        return self._split(form) if self._composites else (form,)

    def of_queries(self, queries: Sequence[Query]) -> list[tuple[str, Context]]:
        """Return the text to look up for each part of each query, with its context.

        Abbreviations are expanded by the text around a query, where it is known, and by the other
        queries of its document. Parts are not split. Offsets without a text, as in BioSyn files,
        are ignored.
        """
        mentions: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for query in queries:
            mentions[query.document, query.context].extend(query.parts)
        forms = {key: self.long_forms(key[1], parts) for key, parts in mentions.items()}
        return [
            (
                forms[query.document, query.context].expand(part) or part,
                Context(query.context, query.start or 0, query.end or 0)
                if query.context
                else Context(),
            )
            for query in queries
            for part in query.parts
        ]

    def short_mentions(
        self, text: str, mentions: Sequence[Mention], long_forms: LongForms
    ) -> list[Mention]:
        """Find further occurrences of a text's abbreviations, outside of known mentions.

        ``mentions`` are in text order.
        """
        spans: dict[int, int] = {}
        for short, long in long_forms.items():
            if self._is_name(long) and _WORD.fullmatch(short):
                for start, end in _whole_words(text, short):
                    spans.setdefault(start, end)
        found = (Mention(start, end, text[start:end]) for start, end in sorted(spans.items()))
        return outside(found, mentions)


def _whole_words(text: str, word: str) -> Iterator[tuple[int, int]]:
    """Find a word as a whole, or with a plural *s*; not as a part of a hyphenated word."""
    start = text.find(word)
    while start >= 0:
        end = start + len(word)
        if _BEGINS.match(text, start) and (bounds := _ENDS.match(text, end)):
            yield start, bounds.end()
        start = text.find(word, start + 1)
