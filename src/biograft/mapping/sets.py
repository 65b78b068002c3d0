"""Mapping sets: what terms or concepts mean in another vocabulary, who says so, and why."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import biograft
from biograft.artifacts import new_file
from biograft.config import AtLeast, Choice, Config, Ratio
from biograft.errors import ConfigError, FormatError
from biograft.kb.iris import SCHEMES, Iris
from biograft.kb.names import decimal_cell, whole_cell
from biograft.linking.outputs.findings import delimited_line, plain
from biograft.linking.outputs.output import encoded
from biograft.mapping.decisions import (
    APPROVED,
    NIL,
    PROPOSED,
    REJECTED,
    RELATIONS,
    Decision,
)
from biograft.mapping.omop_tables import (
    USAGI,
    other_slot,
    slots_of,
    table_of,
    usagi_cells,
    usagi_columns,
)
from biograft.mapping.sssom import (
    CODE,
    CONCEPT,
    KB,
    ORCID,
    PLACEHOLDER,
    SOURCE,
    TERM,
    concept_curie,
    concept_of,
    is_term,
    named_cells,
    prefixes_in,
    quoted,
    read_sssom,
    read_table,
    split_iri,
    sssom_lines,
    subject_curie,
    subject_of,
)

UNSPECIFIED_LICENSE = "https://w3id.org/sssom/license/unspecified"
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
_NAMESPACE = uuid.UUID("6f0c4f9e-3c07-4a43-9b4c-2f0c0a2b7d11")


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingRow(Config):
    """A mapping of a set: a subject, an object, and their relation, in the slots of SSSOM.

    >>> MappingRow(subject_id="MONDO:1", object_id="MESH:D004194").relation
    'exact'
    """

    subject_id: str = ""
    """CURIE of the concept, the code or the term that is mapped."""
    subject_label: str = ""
    predicate_id: str = "skos:exactMatch"
    predicate_modifier: Annotated[str, Choice("", "Not")] = ""
    object_id: str
    """CURIE of the concept that it is mapped to; ``sssom:NoTermFound``: there is none."""
    object_label: str = ""
    mapping_justification: str = MANUAL
    author_id: str = ""
    author_label: str = ""
    reviewer_id: str = ""
    reviewer_label: str = ""
    subject_source: str = ""
    subject_source_version: str = ""
    object_source: str = ""
    object_source_version: str = ""
    mapping_date: str = ""
    confidence: Ratio | None = None
    """Probability that the mapping is right."""
    comment: str = ""
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
            slots=MADE_HERE,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingSet:
    """Mappings with what is known of all of them; SSSOM TSV is its form on disk.

    A subject may have several objects: each has a row.

    >>> rows = [MappingRow(subject_id="MONDO:1", object_id="MESH:D004194")]
    >>> MappingSet(rows=rows).write("diseases.sssom.tsv")  # doctest: +SKIP
    1
    """

    rows: Sequence[MappingRow] = ()
    id: str = ""
    """IRI of the set; empty: one that is made from its content."""
    license: str = UNSPECIFIED_LICENSE
    prefixes: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Namespaces of prefixes; others are looked up among the known ones."""
    slots: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Further metadata of SSSOM."""

    @classmethod
    def of_decisions(
        cls,
        decisions: Iterable[Decision],
        *,
        source: str = "source",
        kb: str = "kb",
        justification: str = "LexicalMatching",
        prefixes: Mapping[str, str] | None = None,
        **metadata: Any,
    ) -> MappingSet:
        """Return the set of decisions, and proposals, about terms.

        Args:
            decisions: Decisions, and proposals.
            source: Name or IRI of the vocabulary that the terms are of.
            kb: Name or IRI of the knowledge base.
            justification: Justification of proposals, a term of SEMAPV (Semantic Mapping
                Vocabulary): ``LexicalMatching``, ``SemanticSimilarityThresholdMatching`` or
                ``CompositeMatching``.
            prefixes: Namespaces of prefixes of concepts; others are looked up among the known.
            metadata: Further fields of the set.
        """
        (source_iri, source), (kb_iri, kb) = split_iri(source), split_iri(kb)
        # two prefixes may not have the same IRI
        kb_prefix = SOURCE if kb_iri == source_iri else KB
        own = {
            **_source_prefixes(source_iri, source),
            kb_prefix: kb_iri,
            CONCEPT: f"{kb_iri}{kb}/concept/",
            ORCID: "https://orcid.org/",
        }
        made = f"semapv:{justification}"
        sources = (f"{SOURCE}:{source}", f"{kb_prefix}:{kb}")
        rows = [MappingRow.of_decision(each, made, sources) for each in decisions]
        used = prefixes_in(row.to_cells() for row in rows)
        spaces = {**(prefixes or {}), **own}
        spaces = {prefix: space for prefix, space in spaces.items() if prefix in used}
        return cls(rows=rows, prefixes=spaces, **metadata)

    @classmethod
    def read(cls, path: str | Path, encoding: str = "utf-8") -> MappingSet:
        """Read a file of SSSOM, of Usagi, or of ``source_to_concept_map``, as its columns say.

        Args:
            path: SSSOM TSV, whose metadata may be in a file beside it that ends in ``.yml``; or
                the CSV of OMOP's tools.
            encoding: Its encoding.

        Raises:
            FormatError: A column is missing, or a row is invalid.
        """
        path = Path(path)
        _, header, lines = read_table(path, encoding)
        if table := table_of(header):
            return cls._of_table(table, path, named_cells(path, header, lines))
        values, cells = read_sssom(path, encoding)
        rows = []
        for line, row in cells:
            try:
                rows.append(MappingRow.from_cells(row, line))
            except ConfigError as error:
                raise FormatError(str(error), path=path, line=line) from error
        prefixes = {name: iri for name, iri in values.pop("curie_map", {}).items() if _is_text(iri)}
        texts = {name: values.pop(name, "") for name in ("mapping_set_id", "license")}
        return cls(
            rows=rows,
            id=texts["mapping_set_id"] if _is_text(texts["mapping_set_id"]) else "",
            license=(texts["license"] if _is_text(texts["license"]) else "") or UNSPECIFIED_LICENSE,
            prefixes=prefixes,
            slots=values,
        )

    @classmethod
    def _of_table(
        cls, table: str, path: Path, lines: Iterable[tuple[int, dict[str, str]]]
    ) -> MappingSet:
        """Return the mappings of a table of OMOP's tools."""
        rows, name = [], quoted(path.name.partition(".")[0])
        of_cell = str if table == USAGI else plain  # as each is written
        for line, given in lines:
            cells = {column: of_cell(cell).strip() for column, cell in given.items()}
            source = quoted(cells.get("source_vocabulary_id", "")) or name
            try:
                slots = {**slots_of(table, cells), "subject_source": f"{SOURCE}:{source}"}
                row = MappingRow.from_cells(slots, line)
            except ConfigError as error:
                raise FormatError(str(error), path=path, line=line) from error
            if other := other_slot(row, table, cells):
                row = replace(row, slots={**row.slots, "other": other})
            rows.append(row)
        name = rows[0].subject_source.partition(":")[2] if rows else name
        return cls(rows=rows, prefixes=_source_prefixes(PLACEHOLDER, name))

    def write_usagi(
        self,
        path: str | Path,
        *,
        overwrite: bool = False,
        left_out: list[tuple[str, str]] | None = None,
    ) -> int:
        """Write the set as Usagi saves its mappings; return the number of rows.

        Args:
            path: File to write.
            overwrite: Replace an existing file.
            left_out: Filled with what Usagi cannot hold, and why; without it, an error.
        """
        cells = []
        for row in self.rows:
            try:
                cells.append(usagi_cells(row))
            except ConfigError as error:
                if left_out is None:
                    raise
                left_out.append((repr(row.subject_label or row.subject_id), str(error)))
        columns = usagi_columns(cells)
        with new_file(Path(path), overwrite=overwrite) as file:
            for line in (columns, *([row.get(name, "") for name in columns] for row in cells)):
                file.write(encoded(delimited_line(line, ",")))
        return len(cells)

    def write(self, path: str | Path, *, overwrite: bool = False) -> int:
        """Write the set as SSSOM TSV; return the number of rows. A failure leaves nothing.

        Args:
            path: File to write.
            overwrite: Replace an existing file.
        """
        cells = [row.to_cells() for row in self.rows]
        metadata = {
            "mapping_set_id": self.iri,
            "license": self.license,
            **self.slots,
        }
        with new_file(Path(path), overwrite=overwrite) as file:
            for line in sssom_lines(metadata, self.prefixes, cells):
                file.write(encoded(line))
        return len(cells)

    @property
    def iri(self) -> str:
        """The IRI of the set: its own, or one that is made from its content."""
        if self.id:
            return self.id
        cells = (row.to_cells() | dict.fromkeys(MADE_HERE, "") for row in self.rows)
        content = "\n".join("\t".join(row.values()) for row in cells)
        made = uuid.uuid5(_NAMESPACE, f"{self.source} {self.kb}\n{content}")
        return f"{PLACEHOLDER}sets/{made}"

    @property
    def source(self) -> str:
        """Name or IRI of the vocabulary of the subjects; that of the first row with one."""
        return self._named("subject_source")

    @property
    def kb(self) -> str:
        """Name or IRI of the vocabulary of the objects; that of the first row with one."""
        return self._named("object_source")

    def _named(self, slot: str) -> str:
        curie = next((said for row in self.rows if (said := getattr(row, slot))), "")
        return (self.iri_of(curie) or curie).removeprefix(PLACEHOLDER)

    def iri_of(self, curie: str) -> str:
        """Return the IRI of a CURIE, by the prefixes of the set; empty if its prefix has none.

        Args:
            curie: The CURIE.
        """
        prefix, _, local = curie.partition(":")
        namespace = self.prefixes.get(prefix) or Iris().namespace_of(prefix)
        return f"{namespace}{local}" if namespace else ""

    def key_of(self, curie: str) -> str:
        """Return what is the same for one concept or term in all sets, however it is written.

        Args:
            curie: CURIE of a subject or an object.
        """
        iri = self.iri_of(curie)
        if is_term(curie) or not iri.startswith(SCHEMES) or iri.startswith(PLACEHOLDER):
            return iri if is_term(curie) else concept_of(curie)
        return concept_of(Iris().id_of(iri))


def _source_prefixes(iri: str, source: str) -> dict[str, str]:
    """Return the namespaces of a vocabulary of terms, of its codes, and of terms without one."""
    return {SOURCE: iri, CODE: f"{iri}{source}/code/", TERM: f"{iri}{source}/term/"}


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def read_decisions(path: str | Path, encoding: str = "utf-8") -> list[Decision]:
    """Read the decisions, and proposals, of a file that :meth:`MappingSet.read` takes.

    Mappings that people made or reviewed are decisions; any other is ``proposed``.

    Args:
        path: File to read.
        encoding: Its encoding.

    Raises:
        FormatError: A column is missing, or a row is invalid.
    """
    decisions = []
    for row in MappingSet.read(path, encoding).rows:
        try:
            decisions.append(row.decision())
        except ConfigError as error:
            raise FormatError(str(error), path=Path(path), line=row.line) from error
    return decisions
