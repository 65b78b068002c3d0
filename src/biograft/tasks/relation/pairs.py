"""Examples as sequences: indicators in place of the two mentions, or before them, a token each.

What is too long loses the text behind, as long as both indicators stay. Else it is cut around
them: what lies between keeps its two ends, what lies outside shares the room that is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from biograft.corpus.tasks.marks import anonymise
from biograft.corpus.tasks.records import RelationExample
from biograft.errors import ConfigError
from biograft.nn import TextEncoder
from biograft.tasks.tokens import TaskTokenizer

LEAST_ROOM = 8
"""Tokens below which nothing but the indicators would be read."""


@dataclass(frozen=True, slots=True)
class PairTokens:
    """A text with two mentions as one sequence."""

    tokens: tuple[int, ...]
    places: tuple[int, int]
    """The tokens of the two indicators."""
    cut_around: bool
    """Whether the text in front of an indicator had to be cut."""
    label: int = -1


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Text before, between and behind the indicators, and these in the text's order.

    Where mentions keep their names, the text goes on with them.
    """

    texts: tuple[str, str, str]
    indicators: tuple[str, ...]
    """One where both mentions share it."""


def indicators_of(examples: Iterable[RelationExample]) -> list[str]:
    """List the indicators of some examples, such as ``@DRUG$``."""
    return sorted({name for each in examples for name in _take_apart(each, named=False).indicators})


class PairReader:
    """Makes sequences of examples."""

    def __init__(self, encoder: TextEncoder, order: str, *, named: bool = False) -> None:
        self._tokenizer, self._order, self._named = TaskTokenizer(encoder), order, named
        added = encoder.tokenizer.get_added_vocab()
        self._numbers: dict[str, list[int]] = {name: [int(row)] for name, row in added.items()}
        if self._tokenizer.room < LEAST_ROOM:
            raise ConfigError(
                f"max_length: leaves room for {self._tokenizer.room} tokens of a text; expected "
                f"at least {LEAST_ROOM}"
            )

    def read(self, examples: Sequence[RelationExample]) -> list[PairTokens]:
        """Make the sequence of each example."""
        pieces = [_take_apart(example, named=self._named) for example in examples]
        texts = [text for piece in pieces for text in piece.texts]
        ids = [tokens.ids for tokens in self._tokenizer.read(texts)]
        return [
            self._join(example, piece, ids[3 * row : 3 * row + 3])
            for row, (example, piece) in enumerate(zip(examples, pieces, strict=True))
        ]

    def _join(
        self, example: RelationExample, piece: _Pieces, ids: Sequence[list[int]]
    ) -> PairTokens:
        marks = [self._indicator(name) for name in piece.indicators]
        room = self._tokenizer.room - sum(map(len, marks))
        before, between, behind = ids
        cut_around = len(before) + len(between) > room
        if cut_around:
            before, between, behind = _cut_around(before, between, behind, room)
        first = len(before)
        second = first if len(marks) == 1 else first + len(marks[0]) + len(between)
        tokens = [*before, *marks[0], *between, *(marks[1] if len(marks) > 1 else ()), *behind]
        tokens = tokens[: self._tokenizer.room]
        places = (first + self._tokenizer.n_before, second + self._tokenizer.n_before)
        if self._order == "roles" and example.second.start < example.first.start:
            places = (places[1], places[0])
        return PairTokens(tuple(self._tokenizer.frame(tokens)), places, cut_around)

    def _indicator(self, name: str) -> list[int]:
        """Give the token of an indicator; one that the training did not know has several."""
        if name not in self._numbers:
            [tokens] = self._tokenizer.read([name])
            self._numbers[name] = tokens.ids
        return self._numbers[name]


def _take_apart(example: RelationExample, *, named: bool) -> _Pieces:
    marked = anonymise(example)
    indicators = tuple(marked.text[slice(*new)] for _, new in marked.edits)
    starts = [start for (start, _), _ in marked.edits]
    goes_on = starts if named else [end for (_, end), _ in marked.edits]
    text = example.text
    between = text[goes_on[0] : starts[1]] if len(starts) > 1 else ""
    return _Pieces((text[: starts[0]], between, text[goes_on[-1] :]), indicators)


def _cut_around(
    before: list[int], between: list[int], behind: list[int], room: int
) -> tuple[list[int], list[int], list[int]]:
    """Cut a text so that both indicators stay in it."""
    if len(between) >= room:
        half = room // 2
        return [], [*between[: room - half], *between[len(between) - half :]], []
    room -= len(between)
    n_behind = min(len(behind), max(room // 2, room - len(before)))
    n_before = min(len(before), room - n_behind)
    return before[len(before) - n_before :], between, behind[:n_behind]
