"""PubTator: the mentions of each document, with its text as context.

The gold of a mention without known concept (``-1``) is NIL. Mentions stand as they do in the
text, so they are not split at ``+`` or ``|``, which names of chemicals may hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from biograft.corpus.formats.pubtator import read_pubtator
from biograft.documents import Document
from biograft.evaluation.formats.documents import queries_of
from biograft.evaluation.queries import GoldConfig, LinkQuery
from biograft.sources.log import ReadLog


def read(path: str, config: GoldConfig, log: ReadLog) -> Iterator[LinkQuery]:
    """Read queries in the order of the documents."""
    for document in read_documents(path, log):
        yield from queries_of(document)


def read_documents(path: str, log: ReadLog) -> Iterator[Document]:
    """Read the documents; a mention that does not stand in its text is left out and counted."""
    yield from read_pubtator(Path(path), log)
