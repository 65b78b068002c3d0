"""Explanations: why the first candidate of a mention came first, and why it is an answer or NIL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class GeneratorScore:
    """Score of one search for the name of the first candidate."""

    generator: str
    weight: float
    score: float | None
    """None if the search has no score for the name."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why the first candidate of a mention came first."""

    form: str
    """The text that was looked up."""
    form_from: str
    """Where it is from: the text, a definition in the document, a list, a composite mention."""
    defined_at: tuple[int, int] | None
    """The span of the long form in the document."""
    name_kind: str
    """Kind of the name that was found: preferred, synonym, ..."""
    match: str
    scores: tuple[GeneratorScore, ...]
    order: str
    """Reason for the order of the first candidates."""
    support: str
    """Support in the document for a short form or shared name."""
    threshold: float | None
    """The score, or probability, below which the answer is NIL."""
    limits: tuple[str, ...]
    """The types and sources that answers were limited to."""

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as plain values."""
        return asdict(self)

    def lines(self) -> Iterator[str]:
        """Yield the explanation in words."""
        where = f" at {self.defined_at[0]}-{self.defined_at[1]}" if self.defined_at else ""
        yield f"looked up: {self.form} ({self.form_from}{where})"
        if self.match:
            yield f"name: {self.match}; {self.name_kind} name of the concept"
        for each in self.scores:
            score = "none" if each.score is None else f"{each.score:.3f}"
            yield f"{each.generator} search: {score}, weight {each.weight:.2f}"
        if self.order:
            yield f"first because: {self.order}"
        if self.support:
            yield f"in the document: {self.support}"
        below = "none" if self.threshold is None else f"below {self.threshold:.2f}"
        yield f"NIL: {below}"
        if self.limits:
            yield f"limited to: {', '.join(self.limits)}"
