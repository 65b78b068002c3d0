"""The mentions of an annotated document as queries; several gold ids are meant together."""

from __future__ import annotations

from collections.abc import Iterator

from biograft.documents import Document
from biograft.evaluation.queries import LinkQuery, gold_ids


def queries_of(document: Document) -> Iterator[LinkQuery]:
    """Give a query for each mention."""
    for mention in document.mentions:
        ids = gold_ids(mention.concepts)
        yield LinkQuery(
            mention.text,
            frozenset(ids),
            needed=tuple(frozenset({i}) for i in ids),
            document=document.id,
            start=mention.start,
            end=mention.end,
            context=document.text,
            type=mention.type,
        )
