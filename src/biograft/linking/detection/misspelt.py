"""Detection by the names of a store, misspelt ones included."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from biograft.corpus.names_index import NameMatch, NamesIndex
from biograft.corpus.spelling import MisspeltMatch, MisspeltNames
from biograft.documents import Document, Mention
from biograft.linking.detection.coordination import join_coordinated
from biograft.linking.detection.detector import in_text_order, outside

NameOf = Callable[[int], str]
_MAX_ACRONYM = 6
"""Longer words of capitals are names of a store that has all its names in capitals."""


@dataclass(frozen=True, slots=True)
class MisspeltMention(Mention):
    """A mention that is a misspelt name of the store."""

    name: str = ""
    """The name as the store writes it."""
    similarity: float = 1.0
    """1 less the edits for each letter of the name: below 1."""


class MisspeltDetector:
    """Finds the names of a store in texts, also with spelling errors.

    Names as written are preferred; a misspelt name that contains one and more replaces it.
    """

    def __init__(self, names: NamesIndex, name_of: NameOf, *, coordinations: bool = True) -> None:
        """``name_of`` returns the name in a row of the store's table."""
        self._names, self._coordinations = names, coordinations
        self._misspelt, self._name_of = MisspeltNames(names), name_of

    def detect(self, documents: Sequence[Document]) -> list[list[Mention]]:
        """Find the names in the texts of documents, without linking them."""
        texts = [document.text for document in documents]
        found = self._misspelt.find_many(texts)
        exact: Sequence[Sequence[Mention]] = [_as_written(each.exact) for each in found]
        if self._coordinations:
            exact = join_coordinated(texts, exact, self._names.among)
        return [
            self._merged(names, each.misspelt) if each.misspelt else list(names)
            for names, each in zip(exact, found, strict=True)
        ]

    def _merged(self, exact: Iterable[Mention], found: Iterable[MisspeltMatch]) -> list[Mention]:
        near = (self._mention(match) for match in found)
        corrected = [mention for mention in near if not is_acronym(mention.name)]
        return in_text_order([*corrected, *outside(exact, corrected)])

    def _mention(self, match: MisspeltMatch) -> MisspeltMention:
        name = self._name_of(match.name_rows[0])
        similarity = 1 - match.edits / max(len(name), match.edits + 1)
        return MisspeltMention(match.start, match.end, match.text, name=name, similarity=similarity)


def is_acronym(name: str) -> bool:
    """Whether a name is a short word of capitals, of which other words are no misspellings.

    >>> is_acronym("PSACH"), is_acronym("Pseudoachondroplasia")
    (True, False)
    """
    return name.isupper() and " " not in name and len(name) <= _MAX_ACRONYM


def _as_written(matches: Iterable[NameMatch]) -> list[Mention]:
    return [Mention(match.start, match.end, match.text) for match in matches]


def looked_up(mention: Mention) -> str:
    """Return the text by which a mention is looked up: that of its name, if it is misspelt."""
    return mention.name if isinstance(mention, MisspeltMention) else mention.text
