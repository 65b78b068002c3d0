"""Readers of lists of terms: SSSLM and Gilda tables, ``{name: [synonyms]}`` in JSON, plain words.

A list without ids has its names as ids: the name is the concept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from biograft.errors import FormatError
from biograft.kb.names import language_code, language_of_script
from biograft.kb.records import Facts, NameKind, Record
from biograft.kb.sources.files import read_lines
from biograft.kb.sources.format import Format, Item, Probe, SourceConfig
from biograft.kb.sources.json_files import JsonStream
from biograft.kb.sources.log import ReadLog
from biograft.kb.sources.obograph import SCOPES
from biograft.kb.sources.table import header_of, named_rows

_SSSLM = ("text", "curie", "predicate")
_GILDA = ("norm_text", "text", "db", "id", "entry_name", "status")
_GILDA_KINDS = {"name": NameKind.PREFERRED, "synonym": NameKind.SYNONYM}


def recognise_table(probe: Probe) -> bool:
    """A header with the columns of SSSLM or of Gilda."""
    header = header_of(probe)
    return header.issuperset(_SSSLM) or header.issuperset(_GILDA)


def read_table(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield the name of every row."""
    known: set[str] = set()
    remedy = "expected the columns of SSSLM or of Gilda"
    for line, row in named_rows(config, log, ("text",), remedy):
        if not (row.keys() >= set(_SSSLM) or row.keys() >= set(_GILDA)):
            raise FormatError(
                "the columns are those of neither SSSLM nor Gilda",
                path=config.path,
                line=1,
                text="\t".join(row),
                remedy=remedy,
            )
        concept, text = row.get("curie", ""), row["text"]
        if "db" in row:
            concept = row["id"] if ":" in row["id"] else f"{row['db']}:{row['id']}"
            name, kind = row["entry_name"], _GILDA_KINDS.get(row["status"], NameKind.RELATED)
        else:
            name = row.get("name", "")
            predicate = row["predicate"].rpartition(":")[2].rpartition("#")[2]
            kind = SCOPES.get(predicate, NameKind.RELATED)
            if predicate == "label":
                kind = NameKind.PREFERRED
        if not concept or not text:
            log.reject("no id or no text", line, "\t".join(row.values()))
            continue
        is_new = concept not in known
        known.add(concept)
        facts = Facts(concept, line, config.language or "en")
        if config.default_type and is_new:
            yield facts.type(config.default_type)
        language = language_code(row.get("language", ""))
        if name and is_new:
            yield facts.name(name, NameKind.PREFERRED, language if name == text else "")
        if text != name:
            yield facts.name(text, kind, language)


TABLE = Format(recognise_table, read_table)


def recognise_synonyms(probe: Probe) -> bool:
    """A JSON object whose first value is a list of texts."""
    start = probe.text.lstrip()
    if not start.startswith("{"):
        return False
    try:
        key, end = json.JSONDecoder().raw_decode(start[1:].lstrip())
        rest = start[1:].lstrip()[end:].lstrip().removeprefix(":").lstrip()
        value, _ = json.JSONDecoder().raw_decode(rest)
    except ValueError:
        return False
    return (
        isinstance(key, str)
        and isinstance(value, list)
        and bool(value)
        and all(isinstance(each, str) for each in value)
    )


def read_synonyms(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield the names of every key.

    Args:
        config: File, and options of ``kb build``.
        log: Counts records read, and what is rejected, doubtful or filtered.
    """
    with JsonStream(config.path, config.encoding, log) as stream:
        for key in stream.members():
            line, value = stream.line, stream.value(valid_unicode=True)
            log.read(fraction=stream.fraction)
            synonyms = value if isinstance(value, list) else None
            if synonyms is None or not all(isinstance(each, str) for each in synonyms):
                log.reject("not a list of names", line, key)
            elif not key.strip():
                log.reject("name is empty", line, key)
            else:
                yield from _named(key.strip(), config, log, line)
                facts = Facts(key.strip(), line)
                for each in filter(None, map(str.strip, synonyms)):
                    yield facts.name(each, language=config.language or language_of_script(each))
        stream.finish()


def _named(name: str, config: SourceConfig, log: ReadLog, line: int) -> Iterator[Record]:
    """Yield a concept whose id is its name."""
    if log.define(name, line):
        facts = Facts(name, line, config.language or language_of_script(name))
        yield facts.name(name, NameKind.PREFERRED)
        if config.default_type:
            yield facts.type(config.default_type)


SYNONYMS = Format(recognise_synonyms, read_synonyms)


def read_words(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield a concept for every line.

    Args:
        config: File, and options of ``kb build``.
        log: Counts records read, and what is rejected, doubtful or filtered.
    """
    log.note("each line is read as the name of a concept of its own")
    for number, line in read_lines(config.path, config.encoding):
        if line.strip() and not line.startswith("#"):
            log.read()
            yield from _named(line.strip(), config, log, number)


WORDS = Format(lambda probe: False, read_words)
