"""Decisions on source terms: which concept each has, who decided it, and when.

A file of decisions is a mapping set in SSSOM TSV (Simple Standard for Sharing Ontological
Mappings): metadata as YAML in comment lines, then one row a decision.
https://mapping-commons.github.io/sssom/
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, unquote

import biograft
from biograft.artifacts import new_file
from biograft.config import AtLeast, Choice, Config, Ratio
from biograft.errors import ConfigError, FormatError, nearest
from biograft.kb.iris import Iris
from biograft.kb.names import clean_lines, fold_lines, name_fault
from biograft.kb.sources.files import read_lines, read_text
from biograft.kb.sources.format import SourceConfig
from biograft.kb.sources.table import read_cells
from biograft.kb.vocabularies import canonical_id, vocabulary_of
from biograft.linking.outputs.findings import delimited_line
from biograft.linking.outputs.output import encoded

PLACEHOLDER = "https://example.org/"
"""Namespace of what has no IRI of its own: local vocabularies and knowledge bases."""
CODE, TERM, CONCEPT = "code", "term", "concept"
"""Prefixes of the codes of source terms, of terms without a code, and of ids without a prefix."""
SOURCE, KB, ORCID, EXTENSION = "source", "kb", "orcid", "ext"
"""Prefixes of vocabularies of terms, of knowledge bases, of people, and of columns of our own."""
_OWN = frozenset(
    {CODE, TERM, CONCEPT, SOURCE, KB, ORCID, EXTENSION, "sssom", "semapv", "skos", "http", "https"}
)
NO_TERM_FOUND = "sssom:NoTermFound"
_PREFIX = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_LOCAL = "()*+,/;=@!$'"
"""Characters that the second part of a CURIE may have beside letters, digits and ``-._~``."""
_ORCID = re.compile(r"orcid:\d{4}-\d{4}-\d{4}-\d{3}[\dX]", re.IGNORECASE)


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
    curie = f"{prefix}:{_quoted(local)}"
    if (
        _PREFIX.fullmatch(prefix)
        and prefix not in _OWN
        and local
        and concept_of(curie) == identifier
    ):
        return curie
    return f"{CONCEPT}:{_quoted(identifier)}"


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
        code: Its code; empty: it has none.

    >>> subject_curie("hart atack", ""), subject_curie("hart atack", "I21")
    ('term:hart%20atack', 'code:I21')
    """
    return f"{CODE}:{_quoted(code)}" if code else f"{TERM}:{_quoted(term)}"


def subject_of(curie: str) -> tuple[str, str]:
    """Return the term and the code of a CURIE; one of them is empty.

    >>> subject_of("term:hart%20atack"), subject_of("HP:0001250")
    (('hart atack', ''), ('', 'HP:0001250'))
    """
    prefix, _, local = curie.partition(":")
    if prefix == TERM:
        return unquote(local), ""
    return "", unquote(local) if prefix == CODE else curie


def split_iri(iri: str) -> tuple[str, str]:
    """Return the namespace of an IRI, and the name in it; a plain name gets a placeholder.

    >>> split_iri("https://lab.example/tests"), split_iri("lab tests")
    (('https://lab.example/', 'tests'), ('https://example.org/', 'lab%20tests'))
    """
    found = re.fullmatch(r"(\w+:.*[/#:])([^/#:]+)[/#]?", iri)
    return (found[1], found[2]) if found else (PLACEHOLDER, _quoted(iri))


def _quoted(text: str) -> str:
    return quote(text, safe=_LOCAL, errors="replace")


PROPOSED, APPROVED, REJECTED, NIL = "proposed", "approved", "rejected", "nil"
VERDICTS = (PROPOSED, APPROVED, REJECTED, NIL)
RELATIONS = ("exact", "broad", "narrow", "close", "related")
UNSPECIFIED_LICENSE = "https://w3id.org/sssom/license/unspecified"
_TIME = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d+)?Z)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(Config):
    """A decision about one source term: it means a concept, does not mean it, or has none.

    >>> Decision(term="hart atack", concept="D009203", verdict="approved", author="Ada").is_decided
    True
    """

    term: str
    code: str = ""
    """Code of the term in its source."""
    context: str = ""
    """Further columns of the source that belong to the term, such as ``unit: mg/dL``."""
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
        for name in ("term", "code", "context", "concept", "name", "author", "reviewer", "store"):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingSet(Config):
    """Metadata of all decisions of a file."""

    id: str = ""
    """IRI of the set; empty: one that is made from its content."""
    license: str = UNSPECIFIED_LICENSE
    source: str = "source"
    """Name or IRI of the vocabulary that the terms are of."""
    kb: str = "kb"
    """Name or IRI of the knowledge base."""
    date: str = ""
    """When it was mapped: date in UTC."""
    justification: Annotated[
        str, Choice("LexicalMatching", "SemanticSimilarityThresholdMatching", "CompositeMatching")
    ] = "LexicalMatching"
    """Justification of proposals, in the terms of SEMAPV (Semantic Mapping Vocabulary)."""
    prefixes: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Namespaces of prefixes of concepts; others are looked up among the known ones."""


_MANUAL = "ManualMappingCuration"
_BY_PEOPLE = frozenset({_MANUAL, "MappingReview"})
_PREDICATES: Mapping[str, str] = {
    **{f"skos:{relation}Match": relation for relation in RELATIONS},
    "owl:sameAs": "exact",
    "owl:equivalentClass": "exact",
    "rdfs:subClassOf": "broad",
}
"""Predicates and the relation that each stands for; any other is taken as ``related``."""
_MANDATORY = ("predicate_id", "object_id", "mapping_justification")
_ALWAYS = ("subject_id", "subject_label", *_MANDATORY)
"""Columns that are written even where they are empty."""
_EXTENSIONS: Mapping[str, str] = {
    "context": "xsd:string",
    "decided_at": "xsd:dateTime",
    "frequency": "xsd:integer",
}
"""Columns that SSSOM does not define, with their types."""
_NAMESPACE = uuid.UUID("6f0c4f9e-3c07-4a43-9b4c-2f0c0a2b7d11")


def write_decisions(
    path: str | Path,
    decisions: Iterable[Decision],
    metadata: MappingSet | None = None,
    *,
    overwrite: bool = False,
) -> int:
    """Write decisions as SSSOM TSV; return their number. A failure leaves nothing.

    Args:
        path: File to write.
        decisions: Decisions, and proposals.
        metadata: Metadata of all of them.
        overwrite: Replace an existing file.

    >>> write_decisions("lab.sssom.tsv", [Decision(term="hart atack", verdict="nil")])
    1
    """
    metadata = metadata or MappingSet()
    rows = [_row(decision, metadata) for decision in decisions]
    stores = {row["object_source_version"] for row in rows}
    store = stores.pop() if len(stores) == 1 else ""
    if store:  # said once, in the metadata
        rows = [row | {"object_source_version": ""} for row in rows]
    names = rows[0] if rows else _ALWAYS
    columns = [name for name in names if name in _ALWAYS or any(row[name] for row in rows)]
    with new_file(Path(path), overwrite=overwrite) as file:
        for line in _metadata_lines(metadata, store, rows, columns):
            file.write(encoded(f"#{line}\n"))
        file.write(encoded(delimited_line(columns, "\t")))
        for row in rows:
            file.write(encoded(delimited_line([row[column] for column in columns], "\t")))
    return len(rows)


def _row(decision: Decision, metadata: MappingSet) -> dict[str, str]:
    justification = _MANUAL if decision.is_decided else metadata.justification
    people: dict[str, str] = {}
    for role, names in (("author", decision.author), ("reviewer", decision.reviewer)):
        ids = names if all(map(_ORCID.fullmatch, names.split("|"))) else ""
        people |= {f"{role}_id": ids, f"{role}_label": "" if ids else names}
    return {
        "subject_id": subject_curie(decision.term, decision.code),
        "subject_label": decision.term,
        "predicate_id": f"skos:{decision.relation}Match",
        "predicate_modifier": "Not" if decision.verdict == REJECTED else "",
        "object_id": concept_curie(decision.concept),
        "object_label": decision.name,
        "mapping_justification": f"semapv:{justification}",
        **people,
        "object_source_version": decision.store,
        "mapping_date": decision.time[:10],
        "confidence": "" if decision.probability is None else repr(decision.probability),
        "comment": decision.comment,
        "context": decision.context,
        "decided_at": decision.time if len(decision.time) > 10 else "",
        "frequency": str(decision.frequency) if decision.frequency > 1 else "",
    }


def _metadata_lines(
    metadata: MappingSet, store: str, rows: list[dict[str, str]], columns: list[str]
) -> list[str]:
    """Return the metadata block as lines of YAML."""
    import yaml

    extensions = [column for column in columns if column in _EXTENSIONS]
    (source_iri, source), (kb_iri, kb) = split_iri(metadata.source), split_iri(metadata.kb)
    # two prefixes may not have the same IRI
    kb_prefix = SOURCE if kb_iri == source_iri else KB
    local = {
        SOURCE: source_iri,
        kb_prefix: kb_iri,
        CODE: f"{source_iri}{source}/code/",
        TERM: f"{source_iri}{source}/term/",
        CONCEPT: f"{kb_iri}{kb}/concept/",
        ORCID: "https://orcid.org/",
        EXTENSION: f"{PLACEHOLDER}extension/",
    }
    used = {SOURCE, kb_prefix, *([EXTENSION] if extensions else [])}
    used |= {row[slot].partition(":")[0] for row in rows for slot in ("subject_id", "object_id")}
    if any(row["author_id"] or row["reviewer_id"] for row in rows):
        used.add(ORCID)
    used.discard("sssom")  # SSSOM has it built in
    iris = Iris(metadata.prefixes)
    prefixes = {
        prefix: local.get(prefix)
        or iris.namespace_of(prefix)
        or f"{PLACEHOLDER}vocabulary/{prefix}/"
        for prefix in sorted(used)
    }
    content = "\n".join("\t".join(row.values()) for row in rows)
    values: dict[str, Any] = {
        "curie_map": prefixes,
        "mapping_set_id": metadata.id or uuid.uuid5(_NAMESPACE, f"{metadata}\n{content}").urn,
        "license": metadata.license,
        "subject_source": f"{SOURCE}:{source}",
        "object_source": f"{kb_prefix}:{kb}",
        "object_source_version": store,
        "mapping_tool": "biograft",
        "mapping_tool_version": biograft.__version__,
        "mapping_date": "" if any(row["mapping_date"] for row in rows) else metadata.date,
        "extension_definitions": [
            {"slot_name": name, "property": f"{EXTENSION}:{name}", "type_hint": _EXTENSIONS[name]}
            for name in extensions
        ],
    }
    filled = {key: value for key, value in values.items() if value}
    text: str = yaml.safe_dump(filled, sort_keys=False, allow_unicode=True, width=1 << 20)
    return text.splitlines()


def read_metadata(path: str | Path) -> MappingSet:
    """Read the metadata of an SSSOM file.

    Args:
        path: File to read; its metadata may be in a file beside it that ends in ``.yml``.
    """
    path = Path(path)
    values = _metadata(path, "utf-8")
    return MappingSet(
        id=_slot(values, "mapping_set_id"),
        license=_slot(values, "license") or UNSPECIFIED_LICENSE,
        source=_expanded(values, "subject_source") or "source",
        kb=_expanded(values, "object_source") or "kb",
        date=_slot(values, "mapping_date"),
    )


def _slot(values: Mapping[str, Any], slot: str) -> str:
    """Return a text of the metadata, empty where it is none: a list may repeat itself endlessly."""
    value = values.get(slot)
    return value if isinstance(value, str) else ""


def _expanded(values: Mapping[str, Any], slot: str) -> str:
    """Return a CURIE of the metadata as an IRI, or as a name where that is a placeholder."""
    prefix, _, local = _slot(values, slot).partition(":")
    iri = f"{_slot(values.get('curie_map', {}), prefix) or prefix}{local}"
    return iri.removeprefix(PLACEHOLDER)


def _metadata(path: Path, encoding: str) -> dict[str, Any]:
    """Read the metadata block, or the file beside an SSSOM file without one."""
    import yaml

    comments = takewhile(lambda line: line[1].startswith("#"), read_lines(path, encoding))
    text = "\n".join(line[1:] for _, line in comments)
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


def read_decisions(path: str | Path, encoding: str = "utf-8") -> list[Decision]:
    """Read the decisions, and proposals, of an SSSOM file.

    Mappings that people made or reviewed are decisions; any other is ``proposed``.

    Args:
        path: File to read.
        encoding: Its encoding.

    Raises:
        FormatError: A column is missing, or a row is invalid.
    """
    path = Path(path)
    values = _metadata(path, encoding)
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
    for slot in ("mapping_date", "object_source_version"):  # of all rows, or of each
        if slot in values and not any(cells.get(slot) for _, cells in rows):
            rows = [(line, cells | {slot: _slot(values, slot)}) for line, cells in rows]
    return [_decision(path, line, cells) for line, cells in rows]


def read_table(path: Path, encoding: str) -> tuple[int, list[str], Iterator[tuple[int, list[str]]]]:
    """Return the header of a table and its line, and the rows with the line of each.

    Args:
        path: CSV or TSV.
        encoding: Encoding of the file.
    """
    rows = read_cells(SourceConfig(path=path, encoding=encoding), quoted_tsv=True)
    line, header = next(rows)
    return line, [cell.strip() for cell in header], rows


def named_cells(
    path: Path, header: list[str], rows: Iterable[tuple[int, list[str]]]
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the cells of each row by column, folded; refuse a row with another number of them.

    Args:
        path: File of the rows, for errors.
        header: Names of the columns.
        rows: Line number and cells of each row.
    """
    for line, cells in rows:
        if len(cells) != len(header):
            raise FormatError(f"{len(cells)} cells, expected {len(header)}", path=path, line=line)
        row = dict(zip(header, cells, strict=True))
        for name, text in row.items():
            if name_fault(text, multiline=name == "comment"):
                row[name] = clean_lines(text) if name == "comment" else fold_lines(text)
        yield line, row


def _decision(path: Path, line: int, cells: Mapping[str, str]) -> Decision:
    def cell(name: str) -> str:
        return cells.get(name, "").strip()

    term, code = subject_of(cell("subject_id"))
    concept = concept_of(cell("object_id"))
    reviewer = cell("reviewer_label") or cell("reviewer_id")
    verdict = APPROVED if concept else NIL
    if cell("predicate_modifier") == "Not":
        verdict = REJECTED
    elif cell("mapping_justification").rpartition(":")[2] not in _BY_PEOPLE and not reviewer:
        verdict = PROPOSED
    try:
        return Decision(
            term=cell("subject_label") or term,
            code=code,
            context=cell("context"),
            concept=concept,
            name=cell("object_label"),
            relation=_PREDICATES.get(cell("predicate_id"), "related"),
            verdict=verdict,
            author=cell("author_label") or cell("author_id"),
            reviewer=reviewer,
            time=cell("decided_at") or cell("mapping_date"),
            comment=cell("comment"),
            probability=float(cell("confidence")) if cell("confidence") else None,
            store=cell("object_source_version"),
            frequency=int(cell("frequency") or 1),
        )
    except (ConfigError, ValueError) as error:
        raise FormatError(str(error), path=path, line=line) from error
