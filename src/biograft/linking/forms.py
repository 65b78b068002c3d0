"""The texts that are looked up for a mention: long forms of abbreviations, parts of composites.

:class:`MentionForms` expands abbreviations and splits composites whose parts are more similar to
names of the store than the whole.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from biograft.kb import KnowledgeBase
from biograft.kb.names import HAN
from biograft.linking.candidates import Context, Query
from biograft.linking.composites import Parts, Similarity, split_composites
from biograft.linking.detection import outside
from biograft.text.abbreviations import LongForms, abbreviates, find_appositions, has_bracket
from biograft.text.documents import Mention

_CACHE_SIZE = 1 << 16
"""Size of the caches of forms; texts repeat themselves."""
_WORD = re.compile(r"\w+(?:-\w+)*")
_BEGINS = re.compile(rf"(?<![^\W{HAN}])(?<!\w-)")
_ENDS = re.compile(rf"s?(?![^\W{HAN}])(?!-\w)")
"""Boundaries of a whole word, with an optional plural *s*; Chinese text may adjoin."""


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
        """Choose what is looked up.

        Args:
            kb: Knowledge base of the names.
            abbreviations: Look up the long forms of abbreviations.
            composites: Look up the parts of composites.
            appositions: Pair a short form with the mention that stands beside it in brackets.
            similarity: Similarity of a search; without one only names of the store are similar.
        """
        self._abbreviations, self._composites = abbreviations, composites
        self._appositions = appositions
        self.is_name = lru_cache(_CACHE_SIZE)(lambda text: bool(kb.rows_by_name(text)))
        """Whether a text is a name of the store, but for case and punctuation."""
        self._search = similarity
        self._split: dict[str, Parts] = {}

    def long_forms(
        self, text: str, mentions: Iterable[str] = (), spans: Iterable[tuple[int, int]] = ()
    ) -> LongForms:
        """Collect the abbreviations of a document, if they are to be expanded.

        They are those that the text defines, and mentions that are no name of the store but
        abbreviate another mention of the document.

        Args:
            text: Text of the document.
            mentions: Texts of its mentions.
            spans: Spans of its mentions; with them, those in appositions count, too.
        """
        texts = list(dict.fromkeys(mentions))
        if len(texts) < 2 and not has_bracket(text):
            return LongForms()
        defined = LongForms.of(text, self.is_name) if self._abbreviations else LongForms()
        if not texts and not spans:
            return defined
        beside = self._beside(text, spans, defined) if self._appositions else ()
        found = LongForms([*beside, *defined.items()])
        if not self._abbreviations:
            return found
        short = [t for t in texts if " " not in t and not self.is_name(t)]
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
            if self.is_name(outer):
                long = defined.get(inner)
                if long is None:
                    usable = _is_mark(inner) and not self.is_name(inner)
                else:
                    usable = long in outer or len(long.split()) > len(inner)
                if usable:
                    yield inner, outer
            elif " " not in outer and inner not in defined and self.is_name(inner):
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
        similarity = [float(self.is_name(text)) for text in texts]
        others = [row for row, value in enumerate(similarity) if not value]
        if self._search is not None and others:
            found = self._search([texts[row] for row in others])
            for row, value in zip(others, found, strict=True):
                similarity[row] = min(value, 1.0)
        return similarity

    def expand(self, text: str, long_forms: LongForms) -> str:
        """Return the long form of a mention; a name that only ends in a short form is kept.

        Args:
            text: The mention.
            long_forms: Abbreviations of its document.
        """
        long = long_forms.expand(text)
        if long is None or (text not in long_forms and self.is_name(text)):
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

        Args:
            text: A text.
            mentions: Its known mentions, in text order.
            long_forms: Its abbreviations.
        """
        spans: dict[int, int] = {}
        for short, long in long_forms.items():
            if self.is_name(long) and _WORD.fullmatch(short):
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
