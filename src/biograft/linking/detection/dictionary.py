"""Detection by the names of a store."""

from __future__ import annotations

from collections.abc import Sequence

from biograft.corpus.names_index import NamesIndex
from biograft.documents import Document, Mention


class DictionaryDetector:
    """Finds the names of a store in texts."""

    def __init__(self, names: NamesIndex) -> None:
        self._names = names

    def detect(self, documents: Sequence[Document]) -> list[list[Mention]]:
        """Find the names in the texts of documents, without linking them."""
        return [
            [Mention(match.start, match.end, match.text) for match in matches]
            for matches in self._names.find_many([document.text for document in documents])
        ]
