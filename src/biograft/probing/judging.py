"""When a filling is right, and whether a query gives its own answer away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from biograft.probing.queries import ClozeQuery
from biograft.probing.wording import BLANK, answer_key, clean_name

if TYPE_CHECKING:
    from biograft.kb import KnowledgeBase


@dataclass(frozen=True, slots=True)
class Gold:
    """What is right for one query."""

    keys: frozenset[str]
    """All names of all right concepts, as ``answer_key`` writes them."""
    given_away: bool
    """A name of a right concept stands in the query (type 1); else it is of type 2."""

    def accepts(self, text: str) -> bool:
        """Whether a text is a name of a right concept, as it is or without blanks."""
        key = answer_key(text)
        return key in self.keys or key.replace(" ", "") in self.keys


def gold_of(base: KnowledgeBase, query: ClozeQuery, languages: tuple[str, ...]) -> Gold:
    """Look up the names of the right concepts."""
    names = {
        clean_name(name.text)
        for answer in query.answers
        for name in base[answer].names
        if name.language in languages
    }
    known = query.prompt.lower().replace(BLANK.lower(), "\n")  # no name reaches over the blank
    return Gold(frozenset(map(answer_key, names)), any(name in known for name in names))
