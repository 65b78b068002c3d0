"""The sentences themselves, in the words of the paper (its Table 1).

Each says something of a concept: ``c`` is what is known of it, its marked name stands before or
behind that. Which one is written is drawn, all of a kind alike.
"""

from __future__ import annotations

from dataclasses import dataclass

from biograft.corpus.mention_text import END, START


@dataclass(frozen=True, slots=True)
class Wording:
    """A sentence with a gap: ``words`` between the name and what is known of it."""

    words: str
    name_first: bool

    def write(self, name: str, known: str) -> str:
        """Fill the gaps."""
        marked = f"{START} {name} {END}"
        first, last = (marked, known) if self.name_first else (known, marked)
        return f"{first} {self.words} {last}"


DEFINED = (
    Wording("is defined as", name_first=True),
    Wording("is described as", name_first=True),
    Wording("are the definitions of", name_first=False),
    Wording("describe", name_first=False),
)
"""Of concepts with a definition."""

SEVERAL = (
    Wording("are the synonyms of", name_first=False),
    Wording("indicate the same concept as", name_first=False),
    Wording("has synonyms such as", name_first=True),
    Wording("refers to the same concepts as", name_first=True),
)
"""Of concepts without a definition but with several names."""

SINGLE = (
    Wording("is", name_first=False),
    Wording("is the same as", name_first=False),
    Wording("is", name_first=True),
    Wording("is the same as", name_first=True),
)
"""Of concepts of which nothing but one name is known."""
