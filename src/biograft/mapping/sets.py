"""Mapping sets: what terms or concepts mean in another vocabulary, who says so, and why."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from biograft.artifacts import new_file
from biograft.display import Shown, table
from biograft.errors import ConfigError, FormatError
from biograft.kb.iris import SCHEMES, Iris
from biograft.linking.outputs.findings import delimited_line, plain
from biograft.linking.outputs.output import encoded
from biograft.mapping.decisions import Decision
from biograft.mapping.omop_tables import (
    USAGI,
    other_slot,
    slots_of,
    table_of,
    usagi_cells,
    usagi_columns,
)
from biograft.mapping.rows import MADE_HERE, MappingRow
from biograft.mapping.sssom import (
    CODE,
    CONCEPT,
    KB,
    ORCID,
    PLACEHOLDER,
    SOURCE,
    TERM,
    concept_of,
    is_term,
    named_cells,
    prefixes_in,
    quoted,
    read_sssom,
    read_table,
    split_iri,
    sssom_lines,
)

UNSPECIFIED_LICENSE = "https://w3id.org/sssom/license/unspecified"
_SHOWN = 10
"""Mappings that a notebook shows."""
_NAMESPACE = uuid.UUID("6f0c4f9e-3c07-4a43-9b4c-2f0c0a2b7d11")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MappingSet(Shown):
    """Mappings with what is known of all of them; SSSOM TSV is its form on disk.

    A subject may have several objects: each has a row.

    >>> rows = [MappingRow(subject_id="MONDO:1", object_id="MESH:D004194")]
    >>> MappingSet(rows=rows).write("diseases.sssom.tsv")  # doctest: +SKIP
    1
    """

    rows: Sequence[MappingRow] = ()
    """The mappings."""
    id: str = ""
    """IRI of the set; empty: one that is made from its content."""
    license: str = UNSPECIFIED_LICENSE
    """Licence of the set, as a URL."""
    prefixes: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Namespaces of prefixes; others are looked up among the known ones."""
    slots: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Further metadata of SSSOM."""

    def _repr_html_(self) -> str:
        columns = ("subject_id", "subject_label", "relation", "object_id", "object_label")
        rows = [[getattr(row, name) for name in columns] for row in self.rows[:_SHOWN]]
        more = f"<p>{len(self.rows):,} mappings</p>"
        return table(rows, columns) + more

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
