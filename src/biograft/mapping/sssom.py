"""SSSOM TSV (Simple Standard for Sharing Ontological Mappings): CURIEs, and the file itself.

A file has metadata as YAML in comment lines, then one row a mapping.
https://mapping-commons.github.io/sssom/
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from biograft.errors import FormatError, nearest
from biograft.kb.iris import Iris
from biograft.kb.names import clean_lines, fold_lines, name_fault
from biograft.kb.sources.files import read_lines, read_text
from biograft.kb.sources.format import SourceConfig
from biograft.kb.sources.table import find_header, fit, read_cells, unquoted
from biograft.kb.sources.workbooks import KEEP_DIGITS, is_workbook, lost_digits, read_sheet
from biograft.kb.vocabularies import canonical_id, vocabulary_of
from biograft.linking.outputs.findings import delimited_line
from biograft.text.virtual_files import text_encoding

PLACEHOLDER = "https://example.org/"
"""Namespace of what has no IRI of its own: local vocabularies and knowledge bases."""
CODE, TERM, CONCEPT = "code", "term", "concept"
"""Prefixes of the codes of source terms, of terms without a code, and of ids without a prefix."""
SOURCE, KB, ORCID, EXTENSION = "source", "kb", "orcid", "ext"
"""Prefixes of vocabularies of terms, of knowledge bases, of people, and of columns of our own."""
BUILT_IN = frozenset({"sssom", "semapv", "skos", "owl", "rdf", "rdfs"})
"""Prefixes that SSSOM has without a declaration."""
_OWN = frozenset({CODE, TERM, CONCEPT, SOURCE, KB, ORCID, EXTENSION, "http", "https", *BUILT_IN})
_TERM = re.compile(rf"(?:{TERM}|{CODE})\d*")
"""Prefixes of source terms; those of further sources in one set are numbered."""
_KNOWN = Iris()
NO_TERM_FOUND = "sssom:NoTermFound"
_PREFIX = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_LOCAL = "()*+,/;=@!$'"
"""Characters that the second part of a CURIE may have beside letters, digits and ``-._~``."""

COLUMNS = (
    *("record_id", "subject_id", "subject_label", "subject_category"),
    *("predicate_id", "predicate_label", "predicate_modifier"),
    *("object_id", "object_label", "object_category", "mapping_justification"),
    *("author_id", "author_label", "reviewer_id", "reviewer_label", "creator_id", "creator_label"),
    *("license", "subject_type", "subject_source", "subject_source_version"),
    *("object_type", "object_source", "object_source_version", "predicate_type"),
    *("mapping_provider", "mapping_source", "mapping_cardinality", "cardinality_scope"),
    *("mapping_tool", "mapping_tool_id", "mapping_tool_version"),
    *("mapping_date", "publication_date", "review_date", "confidence", "reviewer_agreement"),
    *("curation_rule", "curation_rule_text", "subject_match_field", "object_match_field"),
    *("match_string", "subject_preprocessing", "object_preprocessing"),
    *("similarity_score", "similarity_measure", "see_also", "issue_tracker_item"),
    *("other", "comment"),
)
"""Columns of SSSOM, in its order."""
EXTENSIONS: Mapping[str, str] = {
    "context": "xsd:string",
    "decided_at": "xsd:dateTime",
    "frequency": "xsd:integer",
}
"""Columns that SSSOM does not define, with their types."""
OF_ALL = (
    *("subject_type", "subject_source", "subject_source_version"),
    *("object_type", "object_source", "object_source_version", "predicate_type"),
    *("mapping_provider", "mapping_tool", "mapping_tool_id", "mapping_tool_version"),
    *("mapping_date", "subject_match_field", "object_match_field"),
    *("subject_preprocessing", "object_preprocessing", "similarity_measure"),
)
"""Columns that the metadata may give for all rows that have none."""
_HEADER = frozenset(
    {
        *("source_term", "subject_id", "subject_label", "predicate_id", "review_id"),
        *("sourceCode", "target_concept_id"),
    }
)
"""Columns of which the header of a mapped table, a worksheet, SSSOM or OMOP's tables has one."""
_CODES = frozenset(
    {"source_code", "sourceCode", "concept", "suggestion", "subject_id", "object_id"}
)
_EMPTY_CELLS = re.compile(r"([,;\t])\1+$")
_MANDATORY = ("predicate_id", "object_id", "mapping_justification")
_ALWAYS = ("subject_id", "subject_label", *_MANDATORY)
"""Columns that are written even where they are empty."""


def concept_curie(identifier: str) -> str:
    """Return the CURIE of a concept.

    Args:
        identifier: Id of the concept; empty: there is no concept.

    >>> concept_curie("D003924"), concept_curie("HP:0001250"), concept_curie("E11 9")
    ('MESH:D003924', 'HP:0001250', 'concept:E11%209')
    """
    if not identifier:
        return NO_TERM_FOUND
    prefix, colon, local = identifier.partition(":")
    if not colon:
        prefix, local = vocabulary_of(identifier) or CONCEPT, identifier
    curie = f"{prefix}:{quoted(local)}"
    if (
        _PREFIX.fullmatch(prefix)
        and prefix not in _OWN
        and local
        and concept_of(curie) == identifier
    ):
        return curie
    return f"{CONCEPT}:{quoted(identifier)}"


def concept_of(curie: str) -> str:
    """Return the id of a concept; empty means that there is no concept.

    Args:
        curie: CURIE of an SSSOM file.

    >>> concept_of("MESH:D003924"), concept_of("concept:E11%209"), concept_of(NO_TERM_FOUND)
    ('D003924', 'E11 9', '')
    """
    if curie == NO_TERM_FOUND:
        return ""
    prefix, _, local = curie.partition(":")
    return unquote(local) if prefix == CONCEPT else canonical_id(unquote(curie))


def subject_curie(term: str, code: str) -> str:
    """Return the CURIE of a source term: of its code where it has one.

    Args:
        term: Text of the term.
        code: Its code, a CURIE where its prefix is known; empty: it has none.

    >>> subject_curie("hart atack", ""), subject_curie("hart atack", "I21")
    ('term:hart%20atack', 'code:I21')
    >>> subject_curie("disease", "MONDO:1"), subject_curie("disease", "OURS:1")
    ('MONDO:1', 'code:OURS%3A1')
    """
    prefix, colon, local = code.partition(":")
    if colon and prefix not in _OWN and quoted(local) == local and _KNOWN.namespace_of(prefix):
        return code
    return f"{CODE}:{quoted(code)}" if code else f"{TERM}:{quoted(term)}"


def subject_of(curie: str) -> tuple[str, str]:
    """Return the term and the code of a CURIE; one of them is empty.

    Args:
        curie: CURIE of a subject.

    >>> subject_of("term:hart%20atack"), subject_of("HP:0001250")
    (('hart atack', ''), ('', 'HP:0001250'))
    """
    prefix, _, local = curie.partition(":")
    if not is_term(curie):
        return "", curie
    return (unquote(local), "") if prefix.startswith(TERM) else ("", unquote(local))


def is_term(curie: str) -> bool:
    """Return True for the CURIE of a term, or of its code, of a table.

    Args:
        curie: CURIE of a subject.
    """
    return _TERM.fullmatch(curie.partition(":")[0]) is not None


def split_iri(iri: str) -> tuple[str, str]:
    """Return the namespace of an IRI, and the name in it; a plain name gets a placeholder.

    >>> split_iri("https://lab.example/tests"), split_iri("lab tests")
    (('https://lab.example/', 'tests'), ('https://example.org/', 'lab%20tests'))
    """
    found = re.fullmatch(r"(\w+:.*[/#:])([^/#:]+)[/#]?", iri)
    return (found[1], found[2]) if found else (PLACEHOLDER, quoted(iri))


def quoted(text: str) -> str:
    """Return a text as the second part of a CURIE has it."""
    return quote(text, safe=_LOCAL, errors="replace")


def read_sssom(
    path: Path, encoding: str = "utf-8"
) -> tuple[dict[str, Any], list[tuple[int, dict[str, str]]]]:
    """Return the metadata of a file, and the line and the cells of each row.

    What the metadata says of all rows is in the cells of each.

    Args:
        path: File to read; its metadata may be in a file beside it that ends in ``.yml``.
        encoding: Its encoding.

    Raises:
        FormatError: A column is missing, or a row has another number of cells.
    """
    values = _read_metadata(path, encoding)
    line, header, cells = read_table(path, encoding)
    missing = [column for column in _MANDATORY if column not in header]
    if not {"subject_id", "subject_label"} & set(header):
        missing.append("subject_id")
    if missing:
        raise FormatError(
            f"has no column {missing[0]!r}, which SSSOM has",
            path=path,
            line=line,
            remedy=nearest(missing[0], header),
        )
    rows = list(named_cells(path, header, cells))
    for slot in OF_ALL:
        said = values.get(slot)
        said = "|".join(said) if isinstance(said, list) and all_texts(said) else said
        if isinstance(said, str) and not any(row.get(slot) for _, row in rows):
            del values[slot]
            rows = [(line, row | {slot: said}) for line, row in rows]
    return values, rows


def all_texts(values: Iterable[object]) -> bool:
    """Return True if all values are texts."""
    return all(isinstance(each, str) for each in values)


def _read_metadata(path: Path, encoding: str) -> dict[str, Any]:
    """Read the metadata block, or the file beside an SSSOM file without one."""
    import yaml

    if is_workbook(path):
        lines = (next(filter(None, cells)) for _, cells in read_sheet(path))
    else:  # a spreadsheet writes a line as a cell, and empty cells behind it
        found = read_lines(path, text_encoding(path, encoding))
        lines = (unquoted(_EMPTY_CELLS.sub("", line)) for _, line in found)
    text = "\n".join(line[1:] for line in takewhile(lambda line: line.startswith("#"), lines))
    beside = path.with_suffix(".yml")
    if not text and beside.is_file():
        text, path = read_text(beside), beside
    try:
        values = yaml.load(text, Loader=yaml.BaseLoader) or {}  # texts, lists and tables alone
    except (yaml.YAMLError, RecursionError) as error:
        problem = " ".join(str(error).split())
        raise FormatError(f"its metadata is not valid YAML ({problem})", path=path) from error
    if not isinstance(values, dict) or not isinstance(values.get("curie_map", {}), dict):
        raise FormatError("its metadata has no names and values", path=path)
    return values


def read_table(path: Path, encoding: str) -> tuple[int, list[str], Iterator[tuple[int, list[str]]]]:
    """Return the header of a table and its line, and the rows with the line of each.

    Args:
        path: CSV, TSV or a workbook.
        encoding: Encoding of the file; GB18030 and UTF-16 are recognised.
    """
    config = SourceConfig(path=path, encoding=text_encoding(path, encoding))
    rows = read_cells(config, quoted_tsv=True)
    return find_header(rows, path, lambda cells: bool(_HEADER & set(cells)))


def named_cells(
    path: Path, header: list[str], rows: Iterable[tuple[int, list[str]]]
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the cells of each row by column, folded; refuse a row with another number of them.

    Rows without a cell are left out, and a spreadsheet may cut empty cells at the end of a row.

    Args:
        path: File of the rows, for errors.
        header: Names of the columns.
        rows: Line number and cells of each row.
    """
    is_sheet = is_workbook(path)
    for line, cells in rows:
        if not any(map(str.strip, cells)):
            continue
        fitted = fit(cells, len(header), padded=is_sheet)
        if len(fitted) != len(header):
            raise FormatError(f"{len(cells)} cells, expected {len(header)}", path=path, line=line)
        row = dict(zip(header, fitted, strict=True))
        check_codes(path, line, row)
        for name, text in row.items():
            if name_fault(text, multiline=name == "comment"):
                row[name] = clean_lines(text) if name == "comment" else fold_lines(text)
        yield line, row


def check_codes(path: Path, line: int, row: Mapping[str, str]) -> None:
    """Refuse a row in which a spreadsheet has rounded a code.

    Args:
        path: File of the row.
        line: Its line.
        row: Its cells by column.
    """
    for name, cell in row.items():
        is_code = name in _CODES or name.startswith("candidate_")
        if is_code and (problem := lost_digits(cell)):
            raise FormatError(f"{name}: {problem}", path=path, line=line, remedy=KEEP_DIGITS)


def sssom_lines(
    metadata: Mapping[str, Any], prefixes: Mapping[str, str], rows: Sequence[Mapping[str, str]]
) -> Iterator[str]:
    """Yield the lines of a file.

    Args:
        metadata: Slots of the set, in their order.
        prefixes: Namespaces of prefixes; others are looked up among the known ones.
        rows: Cells of each row by column; what all of them say of ``OF_ALL`` is said once.
    """
    import yaml

    shared = {slot: {row.get(slot, "") for row in rows} for slot in OF_ALL}
    common = {slot: said.pop() for slot, said in shared.items() if len(said) == 1}
    # YAML folds what it takes for the end of a line, such as U+2028
    common = {slot: said for slot, said in common.items() if len(said.splitlines()) == 1}
    known = dict.fromkeys([*COLUMNS, *EXTENSIONS])
    named = dict.fromkeys([*known, *(name for row in rows for name in row if name not in known)])
    columns = [
        name
        for name in named
        if name in _ALWAYS or (name not in common and any(row.get(name) for row in rows))
    ]
    extensions = [name for name in columns if name in EXTENSIONS]
    defined = [each for each in metadata.get("extension_definitions", ()) if _slot_of(each)]
    described = {_slot_of(each) for each in defined}
    defined += [
        {"slot_name": name, "property": f"{EXTENSION}:{name}", "type_hint": EXTENSIONS[name]}
        for name in extensions
        if name not in described
    ]
    values = {**metadata, **common, "extension_definitions": defined}
    used = prefixes_in([*rows, common]) | ({EXTENSION} if set(extensions) - described else set())
    iris, own = Iris(prefixes), {EXTENSION: f"{PLACEHOLDER}extension/", **prefixes}
    namespaces = {
        prefix: own.get(prefix) or iris.namespace_of(prefix) or f"{PLACEHOLDER}vocabulary/{prefix}/"
        for prefix in sorted({*prefixes, *(used - BUILT_IN)})
    }
    filled = {key: value for key, value in {"curie_map": namespaces, **values}.items() if value}
    text: str = yaml.safe_dump(filled, sort_keys=False, allow_unicode=True, width=1 << 20)
    yield from (f"#{line}\n" for line in text.splitlines())
    yield delimited_line(columns, "\t")
    for row in rows:
        yield delimited_line([row.get(column, "") for column in columns], "\t")


def _slot_of(definition: object) -> str:
    return str(definition.get("slot_name", "")) if isinstance(definition, Mapping) else ""


_CURIES = (
    *("subject_id", "object_id", "predicate_id", "author_id", "reviewer_id"),
    *("subject_source", "object_source"),
)


def prefixes_in(rows: Iterable[Mapping[str, str]]) -> set[str]:
    """Return the prefixes of the CURIEs in rows.

    Args:
        rows: Cells of each row by column; ``|`` separates several CURIEs in a cell.
    """
    cells = (row.get(column, "") for row in rows for column in _CURIES)
    parts = (part.partition(":") for cell in cells if cell for part in cell.split("|"))
    return {
        prefix
        for prefix, colon, rest in parts
        if colon and not rest.startswith("//") and _PREFIX.fullmatch(prefix)
    }
