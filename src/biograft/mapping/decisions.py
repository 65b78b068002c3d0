"""Decisions on source terms: which concept each has, who decided it, and when."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from biograft.config import AtLeast, Choice, Config, Ratio
from biograft.errors import ConfigError
from biograft.kb.names import name_fault

PROPOSED, APPROVED, REJECTED, NIL = "proposed", "approved", "rejected", "nil"
VERDICTS = (PROPOSED, APPROVED, REJECTED, NIL)
EXACT = "exact"
RELATIONS = (EXACT, "broad", "narrow", "close", "related")
_TIME = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d+)?Z)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(Config):
    """A decision about one source term: it means a concept, does not mean it, or has none.

    >>> Decision(term="hart atack", concept="D009203", verdict="approved", author="Ada").is_decided
    True
    """

    term: str
    """Text of the source term."""
    code: str = ""
    """Code of the term in its source."""
    context: str = ""
    """Further columns of the source that belong to the term, such as ``unit: mg/dL``."""
    part: str = ""
    """Part of the term that the concept is of, where a term has several; empty: the whole."""
    concept: str = ""
    """Id of the concept; empty: no concept of the knowledge base (NIL)."""
    name: str = ""
    """Preferred name of the concept when it was decided."""
    relation: Annotated[str, Choice(*RELATIONS)] = "exact"
    """Relation of the concept to the term, as in SKOS; ``broad``: it is broader than the term."""
    verdict: Annotated[str, Choice(*VERDICTS)] = PROPOSED
    """``proposed`` by a program and not decided; ``approved``: the term means the concept;
    ``rejected``: it does not; ``nil``: the knowledge base has no concept for it."""
    author: str = ""
    """Author: a name, or an ORCID such as ``orcid:0000-0002-1825-0097``. ``|`` separates
    several."""
    reviewer: str = ""
    """Reviewer of the author's decision, written in the same way."""
    time: str = ""
    """When it was decided, in UTC: ``2026-11-24T09:30:00Z``, or the date only."""
    comment: str = ""
    """Remark of the author."""
    probability: Ratio | None = None
    """Probability that the mapping is right."""
    store: str = ""
    """Version or fingerprint of the knowledge base."""
    frequency: Annotated[int, AtLeast(1)] = 1
    """Number of rows of the source that have the term."""

    def __post_init__(self) -> None:
        super(Decision, self).__post_init__()
        if not self.term.strip() and not self.code.strip():
            raise ConfigError("term: expected a term or a code, found neither")
        if self.concept and self.verdict == NIL:
            raise ConfigError(f"concept: expected none where the verdict is nil: {self.concept!r}")
        if not self.concept and self.verdict in (APPROVED, REJECTED):
            raise ConfigError(f"concept: expected an id where the verdict is {self.verdict}")
        if self.verdict == PROPOSED and self.reviewer:
            raise ConfigError("reviewer: expected none of what is only proposed")
        if self.time and not _is_time(self.time):
            raise ConfigError(
                f"time: expected a date, or a time as 2026-11-24T09:30:00Z, found {self.time!r}"
            )
        texts = ("term", "code", "context", "part", "concept", "name", "author", "reviewer")
        for name in (*texts, "store"):
            if fault := name_fault(getattr(self, name)):
                raise ConfigError(f"{name}: {fault}")
        if fault := name_fault(self.comment, multiline=True):
            raise ConfigError(f"comment: {fault}")

    @property
    def is_decided(self) -> bool:
        """Return True if a reviewer decided it; False for a proposal of a program."""
        return self.verdict != PROPOSED


def _is_time(text: str) -> bool:
    """Return True for a date, or a time in UTC, as ISO 8601 has them."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return _TIME.fullmatch(text) is not None
