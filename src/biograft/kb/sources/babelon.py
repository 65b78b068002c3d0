"""Babelon reader: translations of the names and definitions of an ontology, a TSV with a header.

The files of HPO have the columns of the standard; those of the Disease Ontology call some by other
names. A translation is a name of its concept, of the kind that its predicate says.
"""

from __future__ import annotations

from collections.abc import Iterator

from biograft.kb.names import language_code
from biograft.kb.records import Facts, NameKind, NameRecord
from biograft.kb.sources.format import Format, Item, Probe, SourceConfig
from biograft.kb.sources.log import ReadLog
from biograft.kb.sources.obograph import SCOPES
from biograft.kb.sources.table import header_of, named_rows

_COLUMNS = ("subject_id", "predicate_id", "translation_value", "translation_language")
_OTHER_NAMES = {
    "source_id": "subject_id",
    "predicate": "predicate_id",
    "translation_text": "translation_value",
    "translation_lang": "translation_language",
    "status": "translation_status",
}
"""Columns of the Disease Ontology, and their names in the standard."""
_KINDS = {"label": NameKind.PREFERRED, **SCOPES}
_DEFINITIONS = ("IAO_0000115", "definition", "hasDefinition")
_UNTRANSLATED = "NOT_TRANSLATED"


def recognise(probe: Probe) -> bool:
    """A header with a column for everything that is read."""
    header = header_of(probe)
    return {_OTHER_NAMES.get(name, name) for name in header}.issuperset(_COLUMNS)


def read(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield the name or the definition of every row."""
    remedy = "expected a Babelon file of translations"
    for line, row in named_rows(config, log, _COLUMNS, remedy, _OTHER_NAMES):
        concept, predicate, text, tag = (row[name] for name in _COLUMNS)
        facts = Facts(concept, line, language_code(tag))
        predicate = predicate.replace("IAO:", "IAO_").rpartition(":")[2]
        if row.get("translation_status", "").upper().replace(" ", "_") == _UNTRANSLATED:
            log.filter("not translated")
        elif not (concept and text and facts.language):
            reason = "concept, translation or language is empty"
            log.reject(reason, line, "\t".join(row.values()))
        elif predicate in _KINDS:
            yield facts.name(text, _KINDS[predicate])
        elif predicate in _DEFINITIONS:
            yield facts.definition(text)
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


FORMAT = Format(recognise, read, tabular=True)
