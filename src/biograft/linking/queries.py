"""Queries of a linker: mentions to be linked, in their context, with or without gold concepts.

:class:`Query` and :class:`GoldQuery` are protocols: evaluation and training bring their own
records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.linking.candidates import Query


class GoldQuery(Query, Protocol):
    """A mention whose concepts are known."""

    @property
    def gold(self) -> frozenset[str]:
        """All correct concept ids; empty means NIL."""

    @property
    def needed(self) -> tuple[frozenset[str], ...]:
        """The correct ids in groups, one group for each concept of a composite mention."""


def check_texts(queries: Sequence[Query], what: str, remedy: str) -> None:
    """Refuse queries none of which has a text, for a linker that reads the text around them.

    Args:
        queries: Queries.
        what: What they are, for the error.
        remedy: What to do.
    """
    if queries and not any(query.context for query in queries):
        raise ConfigError(
            f"{what}: none of the {len(queries):,} has a text, and the linker reads the words "
            f"around a mention; {remedy}"
        )


def overlapping(queries: Sequence[Query]) -> list[bool]:
    """Return which mentions overlap another mention of their document."""
    of_document: defaultdict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for index, query in enumerate(queries):
        if query.document and query.start is not None and query.end is not None:
            of_document[query.document].append((query.start, query.end, index))
    flags = [False] * len(queries)
    for spans in of_document.values():
        last_end, last = 0, -1  # of the mentions before, the one that ends last
        for start, end, index in sorted(spans):
            if last >= 0 and start < last_end:
                flags[last] = flags[index] = True
            if end > last_end or last < 0:
                last_end, last = end, index
    return flags


MIN_FITTED = 50
"""With fewer mentions, all of them may be names by chance."""
MAX_NAMES = 0.95
"""Largest plausible ratio of names: about 0.75 to 0.8 for a dictionary with training mentions."""


def is_name_of(kb: KnowledgeBase, text: str, ids: Iterable[str]) -> bool:
    """Return whether a text is a name of one of some concepts, but for case and punctuation.

    Args:
        kb: Knowledge base of the concepts.
        text: A text.
        ids: Ids of the concepts.
    """
    concepts = kb.ids_of(ids)
    return any(match.concept in concepts for match in kb.find(text))


def check_not_names(kb: KnowledgeBase, queries: Sequence[GoldQuery]) -> None:
    """Refuse held-out mentions that were added to the store as names, since a search finds all.

    Args:
        kb: Knowledge base that a weight is fitted with.
        queries: Held-out mentions with their concepts.
    """
    n = sum(all(is_name_of(kb, part, query.gold) for part in query.parts) for query in queries)
    if len(queries) >= MIN_FITTED and n / len(queries) > MAX_NAMES:
        raise ConfigError(
            f"held-out mentions: {n:,} of {len(queries):,} are names of their concepts in this "
            "store, which seems to have been extended by them; a weight fitted on them trusts the "
            "search too much. Use a store without them, such as BioSyn's dev_dictionary for dev"
        )


@dataclass(frozen=True, slots=True)
class LabelledMention:
    """The text of a mention without its context, and the ids of its correct concepts."""

    text: str
    """Text of the mention."""
    concepts: frozenset[str]
    """Ids of its concepts; empty for NIL."""
    document: str = ""
    """Id of its document; mentions of one document are never on both sides of a split."""
