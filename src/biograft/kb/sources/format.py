"""Source formats: settings of a source, records and blocks, recognition of files by content.

Registry of source formats; read a source of any format with the filters common to all.
"""

from __future__ import annotations

import codecs
import itertools
import zipfile
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol, TypeAlias, TypeVar

from biograft.artifacts import MANIFEST, peek
from biograft.config import Option, split_columns
from biograft.errors import InputError, UnrecognisedError
from biograft.kb.names import fold_lines, language_code
from biograft.kb.records import DefinitionRecord, NameRecord, Record, RelationRecord
from biograft.kb.sources.files import (
    exists,
    open_zip,
    read_head,
    refuse_utf16,
    shown_encoding,
)
from biograft.kb.sources.log import ReadLog
from biograft.kb.sources.workbooks import is_workbook, read_sheet
from biograft.registry import Registry

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class Block:
    """A table of records of one type, whose columns are the fields of the record.

    Readers of very large tables yield blocks instead of single records.
    """

    record: type[Record]
    """Type of the records."""
    frame: pl.DataFrame
    """The records, a row each."""


Item: TypeAlias = Record | Block


KeptLanguages = Annotated[
    tuple[str, ...],
    Option("Keep names in these languages; the first is preferred.", "--lang", "en,zh"),
]


@dataclass(frozen=True, kw_only=True)
class SourceConfig:
    """A file or folder to read, with its settings; an empty filter keeps everything."""

    path: Path
    """File or folder."""
    format: Annotated[str, Option("Format of the sources; default: detect.", metavar="F")] = ""
    languages: KeptLanguages = ()
    """Codes of the languages to keep, as ``en``; empty: all."""
    vocabularies: Annotated[
        tuple[str, ...], Option("Keep these vocabularies (UMLS SAB).", "--sab", "MSH,...")
    ] = ()
    keep_concepts_of: Annotated[
        tuple[str, ...],
        Option(
            "Keep the concepts that these vocabularies have, with all their names (UMLS SAB).",
            metavar="MSH,...",
        ),
    ] = ()
    term_types: Annotated[
        tuple[str, ...], Option("Keep these term types (UMLS TTY).", "--tty", "PT,...")
    ] = ()
    relations: Annotated[
        tuple[str, ...], Option("Keep these relations only.", metavar="is-a,...")
    ] = ()
    keep_suppressed: Annotated[
        bool, Option("Keep entries that are suppressed, obsolete, inactive or deprecated.")
    ] = False
    keep_codes: Annotated[
        bool, Option("Keep codes of source vocabularies as xrefs (UMLS CODE).", "--codes")
    ] = False
    encoding: Annotated[str, Option("Encoding of the files.", metavar="NAME")] = "utf-8"
    language: Annotated[str, Option("Language of names without one.", metavar="en")] = ""
    default_type: Annotated[
        str, Option("Semantic type of concepts without one.", "--type", "TYPE")
    ] = ""
    columns: Annotated[
        Mapping[str, str],
        Option(
            "For a CSV or TSV: which column holds the id, name, synonyms, definition, type, "
            "language, parents, alternates, xrefs, relation.NAME; or head, relation, tail. A file "
            "without header has columns #1, #2, ...",
            metavar="id=code,name=label,...",
            parse=split_columns,
        ),
    ] = field(default_factory=dict)
    separator: Annotated[
        str, Option("For a CSV or TSV: separator of values in a cell; default: |.", metavar="|")
    ] = ""
    sheet: Annotated[
        str, Option("For a workbook: the sheet; default: the first with a table.", metavar="NAME")
    ] = ""
    prefixes: Annotated[
        Mapping[str, str],
        Option(
            "Prefixes of ids that the files name by IRIs, each with the namespace it stands for.",
            metavar="NAME=IRI,...",
            parse=split_columns,
        ),
    ] = field(default_factory=dict)
    same_as: Annotated[
        tuple[str, ...],
        Option("For triples: relations whose tail is a synonym of the head.", metavar="alias,..."),
    ] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.path, Path):
            object.__setattr__(self, "path", Path(self.path))


@dataclass(frozen=True, slots=True)
class Probe:
    """The beginning of a file, or the names in a folder, by which a format is recognised."""

    path: Path
    """The file or folder."""
    head: bytes
    """The first bytes of the (decompressed) file; empty for a folder."""
    members: frozenset[str] = frozenset()
    """File names in a folder; empty for a file."""

    @property
    def text(self) -> str:
        """The head as text, bytes outside UTF-8 replaced."""
        return self.head.decode("utf-8-sig", errors="replace")

    def lines(self, n: int = 20) -> list[str]:
        """Return the first complete lines of the head that are not empty.

        Args:
            n: Maximum number of lines.
        """
        lines = [line.rstrip("\r") for line in self.text.split("\n")]
        if len(lines) > 1 and not self.text.endswith("\n"):
            lines.pop()
        return [line for line in lines if line.strip()][:n]

    @property
    def first_line(self) -> str:
        """The first line that is not empty."""
        return next(iter(self.lines(1)), "")

    def unrecognised(self, problem: str, remedy: str) -> UnrecognisedError:
        """Return the error that no reader, or not the one asked for, knows the content.

        Args:
            problem: What is wrong with it.
            remedy: What to do.
        """
        line, text = (1, self.first_line) if self.head else (None, None)
        return UnrecognisedError(problem, path=self.path, line=line, text=text, remedy=remedy)


@dataclass(frozen=True, slots=True)
class Format:
    """A format of ontology files; each reader module defines one."""

    recognise: Callable[[Probe], bool]
    """Returns True for a file or folder in the format."""
    read: Callable[[SourceConfig, ReadLog], Iterator[Item]]
    """Yields the records of a file or folder."""
    languages_inside: bool = True
    """Whether one file may hold names in several languages."""
    tabular: bool = False
    """Whether files are tables that a column mapping could describe as well."""


class Recogniser(Protocol):
    """A format that can recognise its files."""

    def recognise(self, probe: Probe, /) -> bool:
        """Whether the probe is of this format."""


R = TypeVar("R", bound=Recogniser)
_PROBED_ROWS = 200
"""Rows of a workbook by which its format is recognised."""


def look_at(path: Path) -> Probe:
    """Probe a file, or the names in a folder.

    Args:
        path: The file or folder.
    """
    if exists(path) and path.is_dir():
        return Probe(path, b"", frozenset(entry.name for entry in path.iterdir()))
    if is_workbook(path):
        rows = itertools.islice(read_sheet(path), _PROBED_ROWS)
        lines = ("\t".join(map(fold_lines, cells)) for _, cells in rows)
        return Probe(path, "".join(f"{line}\n" for line in lines).encode())
    head = read_head(path)
    encoding = shown_encoding(head, "utf-8")
    if encoding != "utf-8":
        head = codecs.getincrementaldecoder(encoding)().decode(head).encode()
    return Probe(path, head)


def look_into(path: Path) -> Probe:
    """Probe a file, or all names below a folder or in a zip archive.

    Args:
        path: The file, folder or zip archive.
    """
    if exists(path) and path.is_dir():
        names = (each.name for each in path.rglob("*") if not each.name.startswith("."))
        return Probe(path, b"", frozenset(names))
    if zipfile.is_zipfile(path):
        with open_zip(path) as archive:
            return Probe(path, b"", frozenset(Path(name).name for name in archive.namelist()))
    return Probe(path, read_head(path))


def find_format(probe: Probe, formats: Registry[R], problem: str, hint: str = "") -> str:
    """Name the first format that recognises what the probe shows.

    If there is none, ``problem`` says so, and ``hint`` how to name the right one.

    Args:
        probe: Beginning of a file, or names in a folder.
        formats: The formats.
        problem: Message if there is none.
        hint: How to name the right one.
    """
    for name, form in formats.load_all():
        if form.recognise(probe):
            return name
    refuse_utf16(probe.head, probe.path)
    names = ", ".join(formats)
    raise probe.unrecognised(problem, f"name the format, one of {names}{hint and f' ({hint})'}")


STARTER = "starter"
BUILT_IN = {STARTER: "concepts", "clinical-findings": "findings"}
"""Sources that ship with biograft, and their folders in the package."""

FORMATS: Registry[Format] = Registry(
    "source format",
    {
        # tried in this order when a file is recognised, the most specific first
        "umls": ("umls_rrf:FORMAT", "UMLS RRF: a META folder or single files"),
        "rxnorm": ("rxnorm:FORMAT", "RxNorm RRF: an rrf folder or single files"),
        "athena": ("athena:FORMAT", "OMOP vocabularies: the folder of an Athena bundle"),
        "loinc": ("loinc:FORMAT", "LOINC: Loinc.csv, or the folder of a release"),
        "snomed": ("snomed:FORMAT", "SNOMED CT RF2: a release folder"),
        "mesh": ("mesh:FORMAT", "MeSH descriptor or supplementary XML"),
        "icd10cm": ("icd:TABULAR", "ICD-10-CM: the tabular list, XML"),
        "claml": ("icd:CLAML", "ClaML: ICD-10, ICD-10-GM, OPS"),
        "icd11": ("icd:LINEARISATION", "ICD-11: the simple tabulation, TSV or workbook"),
        "obo": ("obo:FORMAT", "OBO 1.2 and 1.4"),
        "owl": ("owl:FORMAT", "OWL ontologies and SKOS in RDF/XML, Turtle, ..."),
        "obograph": ("obograph:FORMAT", "OBO Graphs JSON"),
        "fhir": ("fhir:FORMAT", "FHIR CodeSystem, ValueSet, ConceptMap; bundles, NPM packages"),
        "sssom": ("sssom:FORMAT", "SSSOM: exact mappings as cross-references"),
        "term-table": ("term_lists:TABLE", "SSSLM and Gilda: tables of names with their ids"),
        "medic": ("medic:FORMAT", "MEDIC: CTD's TSV or CSV, or the 2012 form"),
        "babelon": ("babelon:FORMAT", "Babelon: translations of an ontology, TSV"),
        "zh-disease": ("chinese:DISEASE_PAGES", "Chinese disease pages, JSON lines"),
        "zh-codes": ("chinese_codes:FORMAT", "Chinese tables of ICD codes (国临版, 医保版)"),
        "zh-alias": ("chinese:DISEASE_TABLE", "Chinese disease table with aliases, CSV"),
        "scispacy": ("scispacy:FORMAT", "scispaCy's JSON and JSONL concepts"),
        "jsonl": ("jsonl:FORMAT", "biograft's own JSON lines, one concept each"),
        "biosyn": ("biosyn:FORMAT", "BioSyn dictionary, id||name"),
        "triples": ("triples:FORMAT", "head, relation, tail in a TSV"),
        "table": ("table:FORMAT", "any CSV, TSV or workbook with a column mapping"),
        "synonyms": ("term_lists:SYNONYMS", "JSON: {name: [synonyms]}"),
        "words": ("term_lists:WORDS", "plain text, one name a line; it must be named"),
    },
    group="biograft.sources",
    home="biograft.kb.sources",
)


_HOW_TO_NAME = (
    "head, relation, tail without a header are `--format triples`; any other table needs "
    "`--columns`"
)
_STORE_FORMAT = "biograft-kb"


def sniff(path: Path) -> str:
    """Name the format of a file or folder by its content.

    Args:
        path: The file or folder.
    """
    probe = look_at(path)
    problem = f"no reader knows this {'content' if probe.head else 'folder'}"
    return find_format(probe, FORMATS, problem, _HOW_TO_NAME)


def resolve(config: SourceConfig) -> SourceConfig:
    """Complete a configuration: path of the starter, format by content, language codes.

    Args:
        config: The source.
    """
    config = replace(
        config,
        languages=tuple(map(language_code, config.languages)),
        language=language_code(config.language),
    )
    is_there = exists(config.path)
    if str(config.path) in BUILT_IN and not is_there:
        folder = built_in_folder(str(config.path))
        return replace(config, path=folder, format="jsonl")
    if not is_there:
        raise InputError("does not exist", path=config.path, remedy="check the path")
    if peek(config.path / MANIFEST).get("format") == _STORE_FORMAT:
        raise InputError(
            "is a built knowledge base, not a source",
            path=config.path,
            remedy="export it with `biograft kb export` and name that file",
        )
    name = config.format or (_sniff_table(config.path) if config.columns else sniff(config.path))
    FORMATS.load(name)
    encoding = config.encoding
    if config.path.is_file() and not is_workbook(config.path):
        encoding = shown_encoding(read_head(config.path), encoding)
    return replace(config, format=name, encoding=encoding)


def read_source(config: SourceConfig, log: ReadLog | None = None) -> Generator[Item, None, None]:
    """Read a source as a stream of records, or of blocks of records if it is huge.

    Filters on languages and relations are common to all formats, and applied here.

    Args:
        config: The source.
        log: Where rows are counted; None: nowhere.
    """
    config = resolve(config)
    log = log or ReadLog(config.path)
    if config.path.is_file():  # a reader notes the files of a folder
        log.opened(config.path)
    for prefix, namespace in config.prefixes.items():
        log.iris.declare(prefix, namespace)
    wanted: dict[type[Record], tuple[str, tuple[str, ...]]] = {
        NameRecord: ("language", config.languages),
        DefinitionRecord: ("language", config.languages),
        RelationRecord: ("relation", config.relations),
    }
    unnamed: set[str] = set()
    for item in FORMATS.load(config.format).read(config, log):
        record = item.record if isinstance(item, Block) else type(item)
        column, values = wanted.get(record, ("", ()))
        if not values:
            yield item
        elif isinstance(item, Block):
            yield _keep_rows(item, column, values, log)
        elif getattr(item, column) in values:
            yield item
        else:
            log.filter(column)
            if isinstance(item, NameRecord):
                unnamed.add(item.concept)
    if unnamed:
        log.leave_out(unnamed)


def _sniff_table(path: Path) -> str:
    """Return the format of a source with a column mapping: a table, unless it cannot be one."""
    try:
        name = sniff(path)
    except UnrecognisedError:
        return "table"
    return "table" if FORMATS.load(name).tabular else name


def built_in_folder(name: str) -> Path:
    """Return the folder of a source that ships with biograft.

    Args:
        name: A name of ``BUILT_IN``.
    """
    return Path(str(resources.files("biograft") / "starter")) / BUILT_IN[name]


def _keep_rows(block: Block, column: str, values: tuple[str, ...], log: ReadLog) -> Block:
    """Keep the rows with one of some values in a column."""
    frame = block.frame.filter(block.frame[column].is_in(values))
    log.filter(column, block.frame.height - frame.height)
    if block.record is NameRecord and frame.height < block.frame.height:
        log.leave_out(ids_lost(block.frame["concept"], frame["concept"]))
    return Block(block.record, frame)


def ids_lost(before: pl.Series, after: pl.Series) -> pl.Series:
    """Return the distinct ids of a block without a row left after a filter.

    Args:
        before: Ids of a block.
        after: Those that a filter kept.
    """
    ids = before.unique()
    return ids.filter(~ids.is_in(after.implode()))
