"""Spans of the mentions that documents have, linked by the concept ids that they state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from biograft.kb import KnowledgeBase
from biograft.text.documents import Document, Mention
from biograft.text.shards import AnnotatedDocument, LinkedSpan


def with_given(
    annotated: Iterable[AnnotatedDocument],
    documents: Iterable[Document],
    kb: KnowledgeBase,
    how: str,
    counts: Counter[str],
) -> Iterator[AnnotatedDocument]:
    """Replace the spans of documents by those given, or (``both``) add the given ones.

    Of overlapping spans a given one stays, of two given ones the longer. Mentions without a
    concept of the store are counted and left out.
    """
    for found, document in zip(annotated, documents, strict=True):
        given = _disjoint(_linked(document, kb, counts))
        kept = [span for span in found.spans if how == "both" and not _overlaps(span, given)]
        spans = tuple(sorted([*given, *kept]))
        counts["by given mention"] += len(given)
        counts["spans"] += len(spans) - len(found.spans)
        yield replace(found, spans=spans)


def _linked(document: Document, kb: KnowledgeBase, counts: Counter[str]) -> Iterator[LinkedSpan]:
    for mention in document.mentions:
        row = next((row for row in map(kb.find_row, mention.concepts) if row is not None), None)
        if row is None:
            counts["given without a concept of the store"] += 1
        elif _fits(mention, document.text):
            yield LinkedSpan(mention.start, mention.end, kb.id_at(row), 1.0)
        else:
            counts["given outside the text"] += 1


def _fits(mention: Mention, text: str) -> bool:
    return 0 <= mention.start < mention.end <= len(text)


def _disjoint(spans: Iterable[LinkedSpan]) -> list[LinkedSpan]:
    kept: list[LinkedSpan] = []
    for span in sorted(spans, key=lambda span: (span.start - span.end, span.start)):
        if not _overlaps(span, kept):
            kept.append(span)
    return kept


def _overlaps(span: LinkedSpan, others: Iterable[LinkedSpan]) -> bool:
    return any(span.start < other.end and other.start < span.end for other in others)
