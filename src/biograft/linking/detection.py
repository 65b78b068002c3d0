"""Where the mentions of a document are: given with it, or found by a dictionary."""

from __future__ import annotations

from typing import Protocol

from biograft.corpus.dictionary import DictionaryMatcher
from biograft.documents import Document, Mention


class MentionDetector(Protocol):
    """Whatever finds the mentions of a document; their concepts are not its business."""

    def detect(self, document: Document) -> list[Mention]:
        """Find the mentions of a document, in the order of the text."""


class GivenMentions:
    """The mentions that a document brings along, such as those of a benchmark."""

    def detect(self, document: Document) -> list[Mention]:
        """Give the document's own mentions as they are."""
        return list(document.mentions)


class DictionaryDetector:
    """The names of a store, wherever they stand in the text."""

    def __init__(self, matcher: DictionaryMatcher) -> None:
        self._matcher = matcher

    def detect(self, document: Document) -> list[Mention]:
        """Find the names in the text of a document; which concepts they mean is left open."""
        return [
            Mention(match.start, match.end, match.text)
            for match in self._matcher.find(document.text)
        ]
