"""Outputs: writers of linked documents, with settings and counts of what is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from biograft.kb import KnowledgeBase
from biograft.linking.candidates import LinkedDocument
from biograft.linking.config import OutputConfig
from biograft.linking.outputs.report import ConceptIds

Documents: TypeAlias = Iterable[LinkedDocument]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputRun:
    """One use of an output: its settings, and counts of what it could not hold."""

    kb: KnowledgeBase
    ids: ConceptIds
    config: OutputConfig = field(default_factory=OutputConfig)
    losses: Counter[str] = field(default_factory=Counter)
    time: datetime = field(default_factory=lambda: datetime.now(UTC))
    """When the documents are linked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """An output; text is made in chunks, other content is written to a file or folder."""

    chunks: Callable[[Documents, OutputRun], Iterator[str]] | None = None
    write: Callable[[Documents, OutputRun, Path, bool], None] | None = None
    """Writes to a path; the last argument allows overwriting."""
    needs: str = ""
    """Kind of path that ``write`` needs: a file, or a folder."""


def storable(value: Any) -> Any:
    """Return a value that Arrow can hold: halves of surrogate pairs in a text become escapes."""
    return encoded(value).decode() if isinstance(value, str) else value


def encoded(text: str) -> bytes:
    """Encode as UTF-8; halves of surrogate pairs, which it cannot hold, become escapes."""
    return text.encode("utf-8", "backslashreplace")
