"""Babelon reader: translations of the names and definitions of an ontology, a TSV with a header.

The files of HPO have the columns of the standard; those of the Disease Ontology call some by other
names. A translation is a name of its concept, of the kind that its predicate says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from biograft.errors import FormatError
from biograft.kb.names import language_code
from biograft.kb.records import DefinitionRecord, NameKind, NameRecord
from biograft.kb.sources.format import Format, Item, Probe, SourceConfig
from biograft.kb.sources.log import ReadLog
from biograft.kb.sources.obograph import SCOPES
from biograft.kb.sources.table import find_delimiter, read_cells

_COLUMNS = {
    "concept": ("subject_id", "source_id"),
    "predicate": ("predicate_id", "predicate"),
    "text": ("translation_value", "translation_text"),
    "language": ("translation_language", "translation_lang"),
}
"""Fields, and the columns that may contain them."""
_STATUS = ("translation_status", "status")
_KINDS = {"label": NameKind.PREFERRED, **SCOPES}
_DEFINITIONS = ("IAO_0000115", "definition", "hasDefinition")
_UNTRANSLATED = "NOT_TRANSLATED"


@dataclass(frozen=True, slots=True)
class _Translation:
    """A row: its concept, its text and language, and what the text is to the concept."""

    line: int
    concept: str
    predicate: str
    text: str
    language: str
    status: str

    @property
    def kind(self) -> NameKind | None:
        """The kind of name; None for what is no name."""
        return _KINDS.get(self.predicate)


def recognise(probe: Probe) -> bool:
    """A header with a column for everything that is read."""
    lines = [line for line in probe.lines() if not line.startswith("#")]
    if not lines:
        return False
    header = [cell.strip() for cell in lines[0].split(find_delimiter(lines[0]))]
    return all(any(name in header for name in names) for names in _COLUMNS.values())


def read(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield the name or the definition of every row."""
    for row in _translations(config, log):
        if row.kind is not None:
            yield NameRecord(row.concept, row.text, row.language, row.kind, line=row.line)
        elif row.predicate in _DEFINITIONS:
            yield DefinitionRecord(row.concept, row.text, row.language, line=row.line)
        else:
            log.reject(f"unknown predicate {row.predicate!r}", row.line, row.text)


def read_names(config: SourceConfig, log: ReadLog) -> Iterator[NameRecord]:
    """Yield the names that mean the concept itself: labels and exact synonyms."""
    for item in read(config, log):
        if not isinstance(item, NameRecord):
            log.filter("no name")
        elif item.kind not in (NameKind.PREFERRED, NameKind.SYNONYM):
            log.filter("a broader, narrower or related name")
        else:
            yield item


def _translations(config: SourceConfig, log: ReadLog) -> Iterator[_Translation]:
    """Read the rows that have a translation."""
    log.opened(config.path)
    columns: dict[str, int] = {}
    n_cells = 0
    for line, cells in read_cells(config, quoted_tsv=True):
        if not columns:
            columns, n_cells = _positions(config, cells, line), len(cells)
            continue
        if not any(map(str.strip, cells)):
            continue
        log.read()
        if len(cells) != n_cells:
            log.reject(f"{len(cells)} columns, expected {n_cells}", line, "\t".join(cells))
            continue
        row = _row(line, {role: cells[k].strip() for role, k in columns.items()})
        if row.status.upper().replace(" ", "_") == _UNTRANSLATED:
            log.filter("not translated")
        elif not (row.concept and row.text and row.language):
            log.reject("concept, translation or language is empty", line, "\t".join(cells))
        else:
            yield row


def _row(line: int, cells: Mapping[str, str]) -> _Translation:
    """Make a translation of cells; of a predicate the part after the prefix is kept."""
    predicate = cells["predicate"].replace("IAO:", "IAO_").rpartition(":")[2]
    language = language_code(cells["language"])
    return _Translation(
        line, cells["concept"], predicate, cells["text"], language, cells.get("status", "")
    )


def _positions(config: SourceConfig, header: list[str], line: int) -> dict[str, int]:
    """Return the position of each column that is read; the status may be missing."""
    named = [cell.strip() for cell in header]
    positions = {}
    for role, names in {**_COLUMNS, "status": _STATUS}.items():
        present = [named.index(name) for name in names if name in named]
        if present:
            positions[role] = present[0]
        elif role != "status":
            raise FormatError(
                f"column {names[0]!r} is missing",
                path=config.path,
                line=line,
                text="\t".join(named),
                remedy="expected a Babelon file of translations",
            )
    return positions


FORMAT = Format(recognise, read, tabular=True)
