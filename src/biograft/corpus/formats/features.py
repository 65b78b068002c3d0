"""What a format of documents is: how it is recognised, read, written, and what it can hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

from biograft.documents import Document
from biograft.sources.format import Probe
from biograft.sources.log import ReadLog


class Feature(StrEnum):
    """Something of a document that not every format can hold; the value names its loss."""

    DOCUMENT_IDS = "document ids"
    LANGUAGE = "language"
    PASSAGES = "passages"
    GAPS = "gaps"
    NESTING = "nesting"
    TYPES = "types"
    CONCEPTS = "concepts"
    PARTS = "parts of composites"
    MENTION_IDS = "mention ids"
    MENTION_RELATIONS = "relations between mentions"
    CONCEPT_RELATIONS = "relations between concepts"
    RELATION_IDS = "relation ids"


EVERYTHING = frozenset(Feature)

Step: TypeAlias = Callable[[Document], tuple[Document, int]]
"""Turns a document into what a format can hold of it, and says how much was lost."""
Writer: TypeAlias = Callable[[Iterable[Document], Path, bool], None]
"""Writes fitted documents to a file or folder; the last argument allows to replace it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFormat:
    """The one object each module of a format offers.

    What a reader gives of a written document is the document after :class:`Fitter` has taken
    from it what ``holds`` lacks and has applied the format's own ``steps``, by kind of loss.
    """

    recognise: Callable[[Probe], bool]
    read: Callable[[Path, ReadLog], Iterator[Document]]
    write: Writer | None = None
    holds: frozenset[Feature] = frozenset()
    steps: tuple[tuple[str, Step], ...] = ()
    unique_ids: bool = False
    """Whether each document needs an id of its own, such as the name of its file."""
