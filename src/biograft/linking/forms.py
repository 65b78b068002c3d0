"""What is looked up for the mentions of a document: long forms, parts of composites.

Offsets stay those of the text as it is; only the form that is searched differs.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from biograft.corpus.abbreviations import LongForms, abbreviates, find_abbreviations
from biograft.documents import Mention
from biograft.kb import KnowledgeBase
from biograft.linking.composites import Parts, split_composite
from biograft.linking.config import Query
from biograft.linking.rankers import Context

_REMEMBERED = 1 << 16
"""Forms of which it is kept what they are; texts repeat themselves."""
_WORD = re.compile(r"\w+(?:-\w+)*")
_BEGINS, _ENDS = re.compile(r"(?<!\w)(?<!\w-)"), re.compile(r"s?(?!\w)(?!-\w)")
"""What stands around a word that is whole: nothing of it before, at most an *s* behind."""


class Forms:
    """Says what to look up for mentions, by the names that a store has."""

    def __init__(self, kb: KnowledgeBase, *, abbreviations: bool, composites: bool) -> None:
        self._abbreviations, self._composites = abbreviations, composites
        is_name = lru_cache(_REMEMBERED)(lambda text: bool(kb.find(text)))
        split = lru_cache(_REMEMBERED)(lambda form: split_composite(form, is_name))
        self._is_name, self._split = is_name, split

    def long_forms(self, text: str, mentions: Iterable[str] = ()) -> LongForms:
        """Collect a document's abbreviations, if they are to be expanded.

        They are those that the text defines, and mentions that are no names of the store but the
        letters of another mention beside them.
        """
        if not self._abbreviations:
            return LongForms(())
        texts = list(dict.fromkeys(mentions))
        short = [t for t in texts if " " not in t and not self._is_name(t)]
        bare = {s: long for s in short for long in texts[::-1] if abbreviates(s, long)}
        return LongForms(find_abbreviations(text), bare)

    def of(self, mention: Mention, long_forms: LongForms) -> Parts:
        """Give what to look up for a mention."""
        form = long_forms.expand(mention.text) or mention.text
        return self._split(form) if self._composites else (form,)

    def of_queries(self, queries: Sequence[Query]) -> list[tuple[str, Context]]:
        """Give what to look up for each part of each query, and where it stands.

        Abbreviations are expanded by the text around a query, where it is known, and by the other
        queries of its document. Parts are taken as they are. A place in a text that is not given
        (BioSyn files tell only where it was) says nothing.
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
        """Find where else a text uses its own abbreviations of names, beside known mentions.

        ``mentions`` do not overlap and stand in the order of the text.
        """
        places: dict[int, int] = {}
        for short, long in long_forms.items():
            if self._is_name(long) and _WORD.fullmatch(short):
                for start, end in _whole_words(text, short):
                    places.setdefault(start, end)
        starts = [mention.start for mention in mentions]
        found = []
        for start, end in sorted(places.items()):
            before = bisect_right(starts, start) - 1
            free = before < 0 or mentions[before].end <= start
            if free and (before + 1 == len(starts) or starts[before + 1] >= end):
                found.append(Mention(start, end, text[start:end]))
        return found


def _whole_words(text: str, word: str) -> Iterator[tuple[int, int]]:
    """Find where a word stands by itself, or with an *s*; not as a part of a hyphenated one."""
    start = text.find(word)
    while start >= 0:
        end = start + len(word)
        if _BEGINS.match(text, start) and (bounds := _ENDS.match(text, end)):
            yield start, bounds.end()
        start = text.find(word, start + 1)


def in_order(mentions: Sequence[Mention]) -> Iterator[Mention]:
    """Give mentions from left to right, the longer first."""
    return iter(sorted(mentions, key=lambda mention: (mention.start, -mention.end)))
