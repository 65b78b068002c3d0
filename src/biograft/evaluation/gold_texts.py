"""Read the gold standards that hold whole texts, every mention in them marked, as documents."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Protocol

from biograft.documents import Document
from biograft.errors import ConfigError
from biograft.evaluation.gold import GOLD_FORMATS, functions_of, nothing_left
from biograft.registry import Registry
from biograft.sources.log import ReadLog


class TextReader(Protocol):
    """Reads the documents of one format; what is wrong in the file goes to the log."""

    def __call__(self, path: str, log: ReadLog) -> Iterator[Document]:
        """Read documents in the order of the file."""


TEXT_FORMATS: Registry[TextReader] = Registry(
    "gold format", functions_of(("pubtator", "sample"), "read_documents")
)


@dataclass(frozen=True, slots=True)
class GoldTexts:
    """The documents of a gold standard, and the log of what was left out of it and why."""

    documents: tuple[Document, ...]
    log: ReadLog


def read_gold_texts(
    path: str | Path, form: str, *, types: Collection[str] = (), limit: int = 0
) -> GoldTexts:
    """Read the documents of a gold standard, the first ``limit`` of them if that is not 0.

    Of their mentions only those of certain types stay, if any are named; a document without any
    stays too, since what is found in it is wrong.
    """
    if form in GOLD_FORMATS and form not in TEXT_FORMATS:
        raise ConfigError(
            f"format: {form!r} has no texts with all their mentions marked; expected one that "
            f"has: {', '.join(TEXT_FORMATS)}"
        )
    log = ReadLog(Path(path))
    read = islice(TEXT_FORMATS.load(form)(str(path), log), limit or None)
    documents = tuple(_of_types(read, types, log))
    if not any(document.mentions for document in documents):
        found = f"no mention is left of {len(documents):,} documents of format {form!r}"
        raise nothing_left(found, log, path)
    return GoldTexts(documents, log)


def _of_types(
    documents: Iterable[Document], types: Collection[str], log: ReadLog
) -> Iterator[Document]:
    """Leave out the mentions of other types, counting them."""
    for document in documents:
        kept = tuple(m for m in document.mentions if not types or m.type in types)
        log.filter("of another type", len(document.mentions) - len(kept))
        yield replace(document, mentions=kept)
