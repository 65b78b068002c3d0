"""Detection by the names of a store."""

from __future__ import annotations

from collections.abc import Sequence

from biograft.corpus.names_index import NamesIndex
from biograft.documents import Document, Mention
from biograft.linking.detection.coordination import join_coordinated


class DictionaryDetector:
    """Finds the names of a store in texts, and coordinations of them."""

    def __init__(self, names: NamesIndex, *, coordinations: bool = True) -> None:
        self._names, self._coordinations = names, coordinations

    def detect(self, documents: Sequence[Document]) -> list[list[Mention]]:
        """Find the names in the texts of documents, without linking them."""
        found = [
            [Mention(match.start, match.end, match.text) for match in matches]
            for matches in self._names.find_many([document.text for document in documents])
        ]
        if not self._coordinations:
            return found
        texts = [document.text for document in documents]
        return join_coordinated(texts, found, self._names.among)
