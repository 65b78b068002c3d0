"""Babelon reader: translations of the names and definitions of an ontology, a TSV with a header.

The files of HPO have the columns of the standard; those of the Disease Ontology call some by other
names. A translation is a name of its concept, of the kind that its predicate says.
"""

from __future__ import annotations

from collections.abc import Iterator

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


def recognise(probe: Probe) -> bool:
    """A header with a column for everything that is read."""
    lines = [line for line in probe.lines() if not line.startswith("#")]
    if not lines:
        return False
    header = [cell.strip() for cell in lines[0].split(find_delimiter(lines[0]))]
    return all(any(name in header for name in names) for names in _COLUMNS.values())


def read(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield the name or the definition of every row."""
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
        row = {role: cells[k].strip() for role, k in columns.items()}
        concept, text, language = row["concept"], row["text"], language_code(row["language"])
        predicate = row["predicate"].replace("IAO:", "IAO_").rpartition(":")[2]
        if row.get("status", "").upper().replace(" ", "_") == _UNTRANSLATED:
            log.filter("not translated")
        elif not (concept and text and language):
            log.reject("concept, translation or language is empty", line, "\t".join(cells))
        elif predicate in _KINDS:
            yield NameRecord(concept, text, language, _KINDS[predicate], line=line)
        elif predicate in _DEFINITIONS:
            yield DefinitionRecord(concept, text, language, line=line)
        else:
            log.reject(f"unknown predicate {predicate!r}", line, text)


def read_names(config: SourceConfig, log: ReadLog) -> Iterator[NameRecord]:
    """Yield the names that mean the concept itself: labels and exact synonyms.

    Args:
        config: File, and options of ``kb build``.
        log: Counts records read, and what is rejected, doubtful or filtered.
    """
    for item in read(config, log):
        if not isinstance(item, NameRecord):
            log.filter("no name")
        elif item.kind not in (NameKind.PREFERRED, NameKind.SYNONYM):
            log.filter("a broader, narrower or related name")
        else:
            yield item


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
