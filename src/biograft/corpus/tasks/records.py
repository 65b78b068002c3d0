"""What tasks learn from: plain records, one type for each kind of question asked of a text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from biograft.documents import Mention


@dataclass(frozen=True, slots=True)
class PairExample:
    """Two texts and how they stand to each other: the same question, an inference, ..."""

    first: str
    second: str
    label: str = ""
    """As written; empty where it is not given."""
    id: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """One text among those to be ranked."""

    text: str
    relevance: int = 0
    """0: not an answer; above: an answer, the higher the better."""
    id: str = ""


@dataclass(frozen=True, slots=True)
class RankingExample:
    """A question and the texts to be ranked for it, in the file's order."""

    query: str
    candidates: tuple[Answer, ...]
    id: str = ""

    @property
    def n_relevant(self) -> int:
        """How many candidates are answers."""
        return sum(answer.relevance > 0 for answer in self.candidates)

    @property
    def decidable(self) -> bool:
        """Whether an order can be right or wrong: there are answers and others."""
        return 0 < self.n_relevant < len(self.candidates)


@dataclass(frozen=True, slots=True)
class ClassExample:
    """A text (a question, with the text it is asked of as ``context``) and its classes."""

    text: str
    labels: tuple[str, ...] = ()
    """One, unless ``multi``; none where it is not given, or (``multi``) where none holds."""
    context: str = ""
    multi: bool = False
    """Whether any number of classes may hold at once."""
    id: str = ""


@dataclass(frozen=True, slots=True)
class RelationExample:
    """A text with two mentions in it, and how their concepts are related."""

    text: str
    first: Mention
    second: Mention
    label: str = ""
    document: str = ""
    id: str = ""


Example: TypeAlias = PairExample | RankingExample | ClassExample | RelationExample
KINDS: dict[str, type[Example]] = {
    "pair": PairExample,
    "ranking": RankingExample,
    "class": ClassExample,
    "relation": RelationExample,
}


def kind_of(example: Example) -> str:
    """Name the kind of an example.

    >>> kind_of(PairExample("a", "b"))
    'pair'
    """
    return next(name for name, record in KINDS.items() if isinstance(example, record))


def labels_of(example: Example) -> tuple[str, ...]:
    """Give the labels of an example; of a ranking, the relevance of each candidate."""
    if isinstance(example, ClassExample):
        return example.labels
    if isinstance(example, RankingExample):
        return tuple(str(answer.relevance) for answer in example.candidates)
    return (example.label,) if example.label else ()


def texts_of(example: Example) -> tuple[str, ...]:
    """Give the texts of an example, those a model would read."""
    if isinstance(example, PairExample):
        return (example.first, example.second)
    if isinstance(example, RankingExample):
        return (example.query, *(answer.text for answer in example.candidates))
    if isinstance(example, ClassExample) and example.context:
        return (example.text, example.context)
    return (example.text,)
