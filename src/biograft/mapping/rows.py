"""A mapping of a set: its subject, its object and their relation, in the slots of SSSOM."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import biograft
from biograft.config import AtLeast, Choice, Config, Ratio
from biograft.display import Shown
from biograft.errors import ConfigError
from biograft.kb.names import decimal_cell, whole_cell
from biograft.mapping.decisions import (
    APPROVED,
    NIL,
    PROPOSED,
    REJECTED,
    RELATIONS,
    Decision,
)
from biograft.mapping.sssom import concept_curie, concept_of, subject_curie, subject_of

MANUAL = "semapv:ManualMappingCuration"
MADE_HERE = {"mapping_tool": "biograft", "mapping_tool_version": biograft.__version__}
"""Slots of rows that are made, and not read."""
_BY_PEOPLE = frozenset({"ManualMappingCuration", "MappingReview"})
_ORCID = re.compile(r"orcid:\d{4}-\d{4}-\d{4}-\d{3}[\dX]", re.IGNORECASE)
_PREDICATES: Mapping[str, str] = {
    **{f"skos:{relation}Match": relation for relation in RELATIONS},
    "owl:sameAs": "exact",
    "owl:equivalentClass": "exact",
    "rdfs:subClassOf": "broad",
}
"""Predicates and the relation that each stands for; any other is taken as ``related``."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MappingRow(Shown, Config):
    """A mapping of a set: a subject, an object, and their relation, in the slots of SSSOM.

    >>> MappingRow(subject_id="MONDO:1", object_id="MESH:D004194").relation
    'exact'
    """

    subject_id: str = ""
    """CURIE of the concept, the code or the term that is mapped."""
    subject_label: str = ""
    """Label of the subject."""
    predicate_id: str = "skos:exactMatch"
    """Relation of subject and object, as ``skos:exactMatch``."""
    predicate_modifier: Annotated[str, Choice("", "Not")] = ""
    """``Not`` if the relation does not hold."""
    object_id: str
    """CURIE of the concept that it is mapped to; ``sssom:NoTermFound``: there is none."""
    object_label: str = ""
    """Label of the object."""
    mapping_justification: str = MANUAL
    """Way in which the mapping was made, a term of SEMAPV."""
    author_id: str = ""
    """Id of the author, as an ORCID."""
    author_label: str = ""
    """Name of the author."""
    reviewer_id: str = ""
    """Id of the reviewer."""
    reviewer_label: str = ""
    """Name of the reviewer."""
    subject_source: str = ""
    """Vocabulary of the subject."""
    subject_source_version: str = ""
    """Version of that vocabulary."""
    object_source: str = ""
    """Vocabulary of the object."""
    object_source_version: str = ""
    """Version of that vocabulary."""
    mapping_date: str = ""
    """Date, ISO 8601."""
    confidence: Ratio | None = None
    """Probability that the mapping is right."""
    comment: str = ""
    """Remark on the mapping."""
    context: str = ""
    """Further columns of a table that belong to the term."""
    decided_at: str = ""
    """Date and time, where the time is known."""
    frequency: Annotated[int, AtLeast(1)] = 1
    """Number of rows of a table that have the term."""
    slots: Mapping[str, str] = field(default_factory=dict)
    """Further slots of SSSOM, and columns that it does not have."""
    line: int = field(default=0, compare=False, repr=False)
    """Line of the file that it was read from; 0: it was not."""

    def __post_init__(self) -> None:
        super(MappingRow, self).__post_init__()
        if not (self.subject_id or self.subject_label):
            raise ConfigError("subject_id: expected a CURIE, found nothing")
        if not self.object_id:
            raise ConfigError("object_id: expected a CURIE, found nothing")

    @classmethod
    def from_cells(cls, cells: Mapping[str, str], line: int = 0) -> MappingRow:
        """Return the mapping of the cells of a row.

        Args:
            cells: Cells by column.
            line: Line of the file.
        """
        stripped = {name: cell.strip() for name, cell in cells.items() if cell.strip()}
        known: dict[str, Any] = {n: stripped.pop(n) for n in _FIELDS if n in stripped}
        try:
            if "confidence" in known:
                known["confidence"] = decimal_cell("confidence", known["confidence"])
            if "frequency" in known:
                known["frequency"] = whole_cell("frequency", known["frequency"])
        except ValueError as error:
            raise ConfigError(str(error)) from error
        return cls(**{"object_id": "", **known}, slots=stripped, line=line)

    def to_cells(self) -> dict[str, str]:
        """Return the cells of the mapping by column."""
        values = {name: getattr(self, name) for name in _FIELDS}
        values["confidence"] = "" if self.confidence is None else repr(self.confidence)
        values["frequency"] = str(self.frequency) if self.frequency > 1 else ""
        return {**values, **self.slots}

    @property
    def relation(self) -> str:
        """The relation of the object to the subject: exact, broad, narrow, close or related."""
        return _PREDICATES.get(self.predicate_id, "related")

    @property
    def is_decided(self) -> bool:
        """Whether a person made or reviewed the mapping."""
        kind = self.mapping_justification.rpartition(":")[2]
        return kind in _BY_PEOPLE or bool(self.reviewer_id or self.reviewer_label)

    @property
    def time(self) -> str:
        """When it was decided: a date, or a time in UTC."""
        return self.decided_at or self.mapping_date

    @classmethod
    def of_decision(
        cls, decision: Decision, justification: str, sources: tuple[str, str] = ("", "")
    ) -> MappingRow:
        """Return a decision as a mapping.

        Args:
            decision: The decision, or a proposal.
            justification: Justification of a proposal, as a CURIE.
            sources: CURIEs of the vocabularies of the subject and of the object.
        """
        people: dict[str, Any] = {}
        for role, names in (("author", decision.author), ("reviewer", decision.reviewer)):
            is_id = bool(names) and all(map(_ORCID.fullmatch, names.split("|")))
            people[f"{role}_{'id' if is_id else 'label'}"] = names
        return cls(
            subject_id=subject_curie(decision.term, decision.code),
            subject_label=decision.term,
            predicate_id=f"skos:{decision.relation}Match",
            predicate_modifier="Not" if decision.verdict == REJECTED else "",
            object_id=concept_curie(decision.concept),
            object_label=decision.name,
            mapping_justification=MANUAL if decision.is_decided else justification,
            subject_source=sources[0],
            object_source=sources[1],
            object_source_version=decision.store,
            mapping_date=decision.time[:10],
            confidence=decision.probability,
            comment=decision.comment,
            context=decision.context,
            decided_at=decision.time if len(decision.time) > 10 else "",
            frequency=decision.frequency,
            slots=MADE_HERE | ({"match_string": decision.part} if decision.part else {}),
            **people,
        )

    def decision(self) -> Decision:
        """Return the mapping as a decision about a term; what no person made is ``proposed``."""
        term, code = subject_of(self.subject_id)
        concept = concept_of(self.object_id)
        verdict = APPROVED if concept else NIL
        if self.predicate_modifier:
            verdict = REJECTED
        elif not self.is_decided:
            verdict = PROPOSED
        return Decision(
            term=self.subject_label or term,
            code=code,
            context=self.context,
            part=self.slots.get("match_string", ""),
            concept=concept,
            name=self.object_label,
            relation=self.relation,
            verdict=verdict,
            author=self.author_label or self.author_id,
            reviewer=self.reviewer_label or self.reviewer_id,
            time=self.time,
            comment=self.comment,
            probability=self.confidence,
            store=self.object_source_version,
            frequency=self.frequency,
        )


_FIELDS = tuple(name for name in MappingRow.__slots__ if name not in ("slots", "line"))
