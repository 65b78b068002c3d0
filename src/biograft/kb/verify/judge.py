"""Whether ids and their labels fit: an id that exists, of the right concept, spelt as its names.

An *error* is certain: an unknown or retired id, the label of another concept, a misspelt label, an
id outside the vocabulary or branch that was asked for. A *warning* may be right: a label that is no
name here, an id that may be newer than the knowledge base. Ids of vocabularies that the knowledge
base does not hold are not judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from biograft.arrays import Flags
from biograft.kb.names import HAN_CHARACTER, normalise
from biograft.kb.store import KnowledgeBase, Replacement
from biograft.kb.vocabularies import (
    canonical_id,
    last_numbers,
    numbered,
    vocabulary_name,
    vocabulary_of,
)


class Status(StrEnum):
    """Result of looking up an id with its label."""

    PREFERRED = "preferred"
    SYNONYM = "synonym"
    NO_LABEL = "no_label"
    OTHER_VOCABULARY = "other_vocabulary"
    NEWER_ID = "newer_id"
    UNKNOWN_LABEL = "unknown_label"
    UNKNOWN_ID = "unknown_id"
    RETIRED = "retired"
    LABEL_OF_ANOTHER = "label_of_another"
    MISSPELT_LABEL = "misspelt_label"
    WRONG_VOCABULARY = "wrong_vocabulary"
    WRONG_BRANCH = "wrong_branch"
    NOT_IN_VALUE_SET = "not_in_value_set"


RIGHT = (Status.PREFERRED, Status.SYNONYM, Status.NO_LABEL)
WARNINGS = (Status.NEWER_ID, Status.UNKNOWN_LABEL)


class Judgement(NamedTuple):
    """Status of an id with a label, and the correction."""

    status: Status
    """Kind of the fault, or ``ok``."""
    row: int | None = None
    """The concept that has the id; None: there is none, or it is retired."""
    others: tuple[str, ...] = ()
    """Ids of other concepts that have the label as a name."""
    replacement: Replacement | None = None
    """Successors of a retired id; None if none is known."""
    label: str = ""
    """The right spelling of a misspelt label."""

    @property
    def level(self) -> str:
        """``error``, ``warning``, or empty where nothing is wrong."""
        if self.status in RIGHT or self.status is Status.OTHER_VOCABULARY:
            return ""
        return "warning" if self.status in WARNINGS else "error"


@dataclass
class Verifier:
    """Judges ids with their labels by one knowledge base.

    >>> Verifier(kb).judge("D003924", "Diabetes Mellitus, Type 1").status  # doctest: +SKIP
    <Status.LABEL_OF_ANOTHER: 'label_of_another'>
    """

    kb: KnowledgeBase
    """Knowledge base with the ids."""
    vocabularies: Sequence[str] = ()
    """Vocabularies that ids must be of; none: any."""
    below: Sequence[str] = ()
    """Concepts of which ids must be one, or below one; none: any."""
    members: Flags | None = None
    """Whether ids may be of each concept; None: of any."""
    _branches: list[int] = field(init=False, default_factory=list)
    _wanted: frozenset[str] = field(init=False, default=frozenset())
    _rows: dict[str, int | None] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._branches = [self.kb.row(identifier) for identifier in self.below]
        self._wanted = frozenset(vocabulary_name(name) for name in self.vocabularies)

    def look_up(self, identifiers: Iterable[str]) -> None:
        """Find the concepts of ids that are judged next, which is quicker than one by one.

        Args:
            identifiers: CURIEs, IRIs or bare ids.
        """
        ids = list(map(self.kb.iris.id_of, identifiers))
        self._rows = dict(zip(ids, self.kb.find_rows(ids), strict=True))

    def judge(self, identifier: str, label: str = "") -> Judgement:
        """Judge an id with a label.

        Args:
            identifier: A CURIE, an IRI, or a bare id of a vocabulary that has such.
            label: The label; empty: the id is judged alone.
        """
        found = self._judge(self.kb.iris.id_of(identifier.strip()), label.strip())
        if found.status is Status.OTHER_VOCABULARY and self._wanted:
            if vocabulary_of(identifier) not in self._wanted:
                return Judgement(Status.WRONG_VOCABULARY)
            return found
        if found.row is None or found.level == "error":
            return found
        identifier = self.kb.id_at(found.row)
        if self._wanted and vocabulary_of(identifier) not in self._wanted:
            return Judgement(Status.WRONG_VOCABULARY, found.row)
        if self._branches and not any(
            self.kb.hierarchy.is_a(found.row, branch) for branch in self._branches
        ):
            return Judgement(Status.WRONG_BRANCH, found.row)
        if self.members is not None and not self.members[found.row]:
            return Judgement(Status.NOT_IN_VALUE_SET, found.row)
        return found

    def _judge(self, identifier: str, label: str) -> Judgement:
        kb = self.kb
        row = self._rows[identifier] if identifier in self._rows else kb.find_row(identifier)
        primary = "" if row is None else kb.id_at(row)
        own = primary == identifier or canonical_id(primary) in kb.spellings(identifier)
        if not own and (retired := self._retired(identifier, row)):
            return Judgement(Status.RETIRED, replacement=retired)
        if row is None:
            if not self.holds(identifier):
                return Judgement(Status.OTHER_VOCABULARY)
            others = tuple(kb.ids_at(kb.rows_by_name(label))) if label else ()
            newer = not others and self._is_newer(identifier, labelled=bool(label))
            return Judgement(Status.NEWER_ID if newer else Status.UNKNOWN_ID, others=others)
        if not label:
            return Judgement(Status.NO_LABEL, row)
        if label == kb.name_at(row):
            return Judgement(Status.PREFERRED, row)
        if own and label in kb.name_texts_at(row):  # most labels are names as they are written
            return Judgement(Status.SYNONYM, row)
        named = kb.rows_by_name(label)
        rows = (row,) if own else kb.rows_of([identifier])  # concepts may share an alternate id
        if (match := next((each for each in named if each in rows), None)) is not None:
            is_preferred = normalise(label) == normalise(kb.name_at(match))
            return Judgement(Status.PREFERRED if is_preferred else Status.SYNONYM, match)
        if named:
            return Judgement(Status.LABEL_OF_ANOTHER, row, others=tuple(kb.ids_at(named)))
        if spelling := self._spelling(label, row):
            return Judgement(Status.MISSPELT_LABEL, row, label=spelling)
        return Judgement(Status.UNKNOWN_LABEL, row)

    def _retired(self, identifier: str, row: int | None) -> Replacement | None:
        """Return what took the place of an id that no concept of today has as its own.

        An id that was merged into another of the same vocabulary is retired, too, whether or not
        its source still has an entry for it; an alternate id of another vocabulary is not.
        """
        stated = self.kb.replacement(identifier)
        if stated is not None or row is None:
            return stated
        primary = self.kb.id_at(row)
        prefix, colon, _ = identifier.partition(":")
        if colon and primary.upper().startswith(f"{prefix.upper()}:"):
            return Replacement(identifier, replaced_by=(primary,))
        return None

    # ---- vocabularies of the knowledge base

    @cached_property
    def _last_numbers(self) -> dict[str, int]:
        """The highest number in every series of the ids of the concepts."""
        kept = self.kb.manifest.get("last_numbers")
        if kept is None:  # of a knowledge base that was built before they were kept
            kept = last_numbers(self.kb.texts("concepts", "id"))
        return {str(series): int(last) for series, last in kept.items()}

    @cached_property
    def held(self) -> frozenset[str]:
        """The vocabularies that the knowledge base holds."""
        return frozenset(series.rpartition(":")[0] for series in self._last_numbers)

    def holds(self, identifier: str) -> bool:
        """Whether the knowledge base holds the vocabulary of an id.

        Args:
            identifier: A CURIE, an IRI or a bare id.
        """
        return vocabulary_of(self.kb.iris.id_of(identifier)) in self.held

    def _is_newer(self, identifier: str, *, labelled: bool) -> bool:
        """Whether an id that no concept has may have been given out after the store was made.

        It is of a series that goes on, and above the last, or with a label that no concept has.
        """
        series, number = numbered(identifier)
        last = self._last_numbers.get(series, 0)
        return last > 0 and number <= 2 * last and (labelled or number > last)

    # ---- spelling

    def _spelling(self, label: str, row: int) -> str:
        """Return the name of a concept that a label is, but for a letter or two of a word."""
        key = normalise(label)
        near = {name: _nearness(key, normalise(name)) for name in self.kb.name_texts_at(row)}
        best = max(near, key=near.__getitem__, default="")
        return best if near.get(best) else ""


_SHORTEST = 4
"""Letters of a word that may be misspelt; shorter words differ in meaning."""


def _nearness(label: str, name: str) -> float:
    """Return how near a label is to a name that it is a misspelling of; 0: it is none.

    Args:
        label: Normalised label.
        name: Normalised name.
    """
    if HAN_CHARACTER.search(name):
        near = len(name) >= _SHORTEST and distance(label, name) == 1
        changed = set(label) ^ set(name)
        return (
            0.9
            if near and not changed & _HAN_MEANING and not any(map(str.isdigit, changed))
            else 0.0
        )
    ours, theirs = label.split(), name.split()
    if label.replace(" ", "") == name.replace(" ", ""):
        return 0.9
    if len(ours) != len(theirs):
        return 0.0
    wrong = [(a, b) for a, b in zip(ours, theirs, strict=True) if a != b]
    if len(wrong) > 1 + (len(ours) > 6):
        return 0.0
    for a, b in wrong:
        if len(b) < _SHORTEST or any(map(str.isdigit, a + b)) or is_variant(a, b):
            return 0.0
        if distance(a, b) > 1 + (len(b) > 7):
            return 0.0
    return 1.0 - len(wrong) / (2 * len(ours))


_HAN_MEANING = frozenset(
    "左右上下前后内外急慢阴阳无有不非一二三四五六七八九十大小高低男女新旧多少病症征性型的及与和或"
)
"""Characters that are never a slip: they make another name, or another form of one."""
_FORMS = frozenset(
    frozenset(pair.split("/"))
    for pair in "/s /es y/ies is/es s/ta /ta um/a us/i a/ae on/a x/ces c/k".split()
)
"""Ends of two forms, or spellings, of one word."""


def is_variant(one: str, other: str) -> bool:
    """Whether two words differ as forms or spellings of one word do, not by a slip.

    Args:
        one: A word in lower case.
        other: Another.

    >>> is_variant("haemorrhage", "hemorrhage"), is_variant("epiphyses", "epiphysis")
    (True, True)
    >>> is_variant("hemorrage", "hemorrhage"), is_variant("arthriti", "arthritis")
    (False, False)
    """
    one, other = (
        re.sub(r"ae|oe", "e", re.sub(r"[iy]s(?=[aei])", "iz", word)).replace("our", "or")
        for word in (one, other)
    )
    if one == other:
        return True
    start = next(
        (k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )
    ends = frozenset((one[start:], other[start:]))
    if ends == {"", "s"} and one[start - 1] in "siu":
        return False
    return start >= _SHORTEST - 1 and ends in _FORMS


def distance(one: str, other: str) -> int:
    """Return how many letters must be added, left out, changed or swapped with the next.

    Args:
        one: A word.
        other: Another.
    """
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        older, before, row = before, row, [i]
        for j, b in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
    return row[-1]
