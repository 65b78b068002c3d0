"""Detection by two detectors."""

from __future__ import annotations

from collections.abc import Sequence

from biograft.documents import Document, Mention
from biograft.linking.detection.detector import MentionDetector, in_text_order, outside


class UnionDetector:
    """Finds what two detectors find; of mentions that overlap, those of the first stay."""

    def __init__(self, first: MentionDetector, second: MentionDetector) -> None:
        self._first, self._second = first, second

    def detect(self, documents: Sequence[Document]) -> list[list[Mention]]:
        """Find the mentions of documents by both detectors."""
        found = zip(self._first.detect(documents), self._second.detect(documents), strict=True)
        return [
            in_text_order([*first, *outside(second, in_text_order(first))])
            for first, second in found
        ]
