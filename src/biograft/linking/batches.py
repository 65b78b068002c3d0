"""What a linker is given: texts, mentions, and documents in batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from biograft.documents import Document
from biograft.errors import ConfigError, shorten

BATCH = 32
"""Documents whose mentions are searched together."""
_MAX_CHARACTERS = 1 << 20
"""Characters of text after which a batch is full, whatever the number of documents."""


def check_mentions(texts: Sequence[str]) -> list[str]:
    """Return mentions as a list; refuse a single string, and rows that are no text."""
    if isinstance(texts, str):
        raise ConfigError(
            f"mentions: expected a list of texts, found the text {shorten(texts)!r}; put it in a "
            "list"
        )
    mentions = list(texts)
    for row, text in enumerate(mentions):
        if not isinstance(text, str):
            raise ConfigError(f"mentions: row {row}: expected a text, found {text!r}")
    return mentions


def batches(documents: Iterable[Document | str], size: int) -> Iterator[list[Document]]:
    """Collect documents until there are ``size`` of them, or much text."""
    if isinstance(documents, str | Document):
        raise ConfigError("documents: expected several, found one; call linker(text)")
    batch: list[Document] = []
    n_characters = 0
    for row, document in enumerate(documents):
        if not isinstance(document, str | Document):
            raise ConfigError(
                f"documents: row {row}: expected a text or Document, found {document!r}"
            )
        batch.append(document if isinstance(document, Document) else Document("", document))
        n_characters += len(batch[-1].text)
        if len(batch) >= size or n_characters >= _MAX_CHARACTERS:
            yield batch
            batch, n_characters = [], 0
    if batch:
        yield batch
