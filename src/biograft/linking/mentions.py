"""The forms that are looked up for a mention.

:func:`split_composite` splits composite mentions (*ovarian and breast cancer*).
:class:`MentionForms` expands abbreviations and splits composites whose parts are more similar to
names of the store than the whole.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from statistics import fmean

from biograft.corpus.abbreviations import LongForms, abbreviates, find_appositions
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

_HAN_CONJUNCTION = re.compile(rf"(?<=[{HAN}])(?:以及|和|与|及|或|、)(?=[{HAN}])")
_HAN_HEADS = (
    "综合征", "综合症", "功能障碍", "后遗症", "肿瘤", "感染", "损伤", "骨折", "出血", "溃疡",
    "癌", "瘤", "炎", "病", "症", "痛",
)  # fmt: skip


Similarity = Callable[[Sequence[str]], Sequence[float]]
"""Returns how similar the most similar name of a store is to each text: 1 for a name itself."""
MARGIN = 0.05
"""The parts of a composite must be more similar to names than the whole, by this much."""


def split_composite(text: str, similarity: Similarity | None = None) -> Parts:
    """Split a composite mention into the names it stands for; other mentions stay whole.

    >>> split_composite("ovarian and breast cancer")
    ('ovarian cancer', 'breast cancer')
    """
    return split_composites([text], similarity)[0]


def split_composites(texts: Sequence[str], similarity: Similarity | None = None) -> list[Parts]:
    """Split those of some mentions that are composite.

    The reading whose parts are on average the most similar to names is taken, if they are more
    similar than the whole; of equally good readings the first, which is the likeliest. Without
    ``similarity`` the first is taken.
    """
    readings = {text: [p for p in _readings(text) if len(p) > 1 and all(p)] for text in texts}
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

    def __init__(
        self,
        kb: KnowledgeBase,
        *,
        abbreviations: bool,
        composites: bool,
        appositions: bool = True,
        similarity: Similarity | None = None,
    ) -> None:
        """``similarity`` is that of a search; without one only names of the store are similar."""
        self._abbreviations, self._composites = abbreviations, composites
        self._appositions = appositions
        self._is_name = lru_cache(_CACHE_SIZE)(lambda text: bool(kb.find(text)))
        self._search = similarity
        self._split: dict[str, Parts] = {}

    def long_forms(
        self, text: str, mentions: Iterable[str] = (), spans: Iterable[tuple[int, int]] = ()
    ) -> LongForms:
        """Collect the abbreviations of a document, if they are to be expanded.

        They are those that the text defines, and mentions that are no name of the store but
        abbreviate another mention of the document. With the ``spans`` of mentions, those in
        appositions count, too.
        """
        defined = LongForms.of(text) if self._abbreviations else LongForms()
        if not mentions and not spans:
            return defined
        beside = self._beside(text, spans, defined) if self._appositions else ()
        found = LongForms([*beside, *defined.items()])
        if not self._abbreviations:
            return found
        texts = list(dict.fromkeys(mentions))
        short = [t for t in texts if " " not in t and not self._is_name(t)]
        undefined = [t for t in short if found.expand(t) is None]
        bare = [(s, long) for s in undefined for long in texts if abbreviates(s, long)]
        return LongForms([*found.items(), *bare])

    def _beside(
        self, text: str, spans: Iterable[tuple[int, int]], defined: LongForms
    ) -> Iterator[tuple[str, str]]:
        """Yield what is no name in an apposition, with the name beside it.

        A long form that the text defines is kept, unless it is a part of the mention before the
        bracket, or has more words than the short form has characters.
        """
        for pair in find_appositions(text, spans):
            outer, inner = pair.long, pair.short
            if self._is_name(outer):
                long = defined.get(inner)
                if long is None:
                    usable = _is_mark(inner) and not self._is_name(inner)
                else:
                    usable = long in outer or len(long.split()) > len(inner)
                if usable:
                    yield inner, outer
            elif " " not in outer and inner not in defined and self._is_name(inner):
                yield outer, inner

    def split(self, forms: Sequence[str]) -> list[Parts]:
        """Return the texts to look up for each form: its parts, if it is composite."""
        if not self._composites:
            return [(form,) for form in forms]
        if len(self._split) > _CACHE_SIZE:
            self._split.clear()
        new = [form for form in dict.fromkeys(forms) if form not in self._split]
        self._split.update(zip(new, split_composites(new, self._similarity), strict=True))
        return [self._split[form] for form in forms]

    def _similarity(self, texts: Sequence[str]) -> list[float]:
        similarity = [float(self._is_name(text)) for text in texts]
        others = [row for row, value in enumerate(similarity) if not value]
        if self._search is not None and others:
            found = self._search([texts[row] for row in others])
            for row, value in zip(others, found, strict=True):
                similarity[row] = min(value, 1.0)
        return similarity

    def expand(self, text: str, long_forms: LongForms) -> str:
        """Return the long form of a mention; a name that only ends in a short form is kept."""
        long = long_forms.expand(text)
        if long is None or (text not in long_forms and self._is_name(text)):
            return text
        return long

    def of_queries(self, queries: Sequence[Query]) -> list[tuple[str, Context]]:
        """Return the text to look up for each part of each query, with its context.

        Abbreviations are expanded by the text around a query, where it is known, and by the other
        queries of its document. Parts are not split. Offsets without a text, as in BioSyn files,
        are ignored, and so are those of mentions that differ from the text.
        """
        of_document: defaultdict[tuple[str, str], list[Query]] = defaultdict(list)
        for query in queries:
            of_document[query.document, query.context].append(query)
        forms = {
            key: self.long_forms(key[1], (part for q in of for part in q.parts), _spans(of))
            for key, of in of_document.items()
        }
        return [
            (
                self.expand(part, forms[query.document, query.context]),
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


def _spans(queries: Iterable[Query]) -> Iterator[tuple[int, int]]:
    """Yield the spans of queries that are as in their texts."""
    for query in queries:
        start, end = query.start, query.end
        if start is not None and end is not None and query.parts == (query.context[start:end],):
            yield start, end


def _is_mark(text: str) -> bool:
    """Whether a text may stand for a name: it has a capital or a digit."""
    return any(char.isupper() or char.isdigit() for char in text)


def _whole_words(text: str, word: str) -> Iterator[tuple[int, int]]:
    """Find a word as a whole, or with a plural *s*; not as a part of a hyphenated word."""
    start = text.find(word)
    while start >= 0:
        end = start + len(word)
        if _BEGINS.match(text, start) and (bounds := _ENDS.match(text, end)):
            yield start, bounds.end()
        start = text.find(word, start + 1)
