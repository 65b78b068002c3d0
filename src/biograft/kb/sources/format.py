"""Source formats: settings of a source, records and blocks, recognition of files by content."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol, TypeAlias, TypeVar

from biograft.config import Option, split_columns
from biograft.errors import UnrecognisedError
from biograft.kb.records import Record
from biograft.kb.sources.files import exists, open_zip, read_head, refuse_utf16
from biograft.registry import Registry

if TYPE_CHECKING:
    import polars as pl

    from biograft.kb.sources.log import ReadLog


@dataclass(frozen=True, slots=True)
class Block:
    """A table of records of one type, whose columns are the fields of the record.

    Readers of very large tables yield blocks instead of single records.
    """

    record: type[Record]
    frame: pl.DataFrame


Item: TypeAlias = Record | Block


KeptLanguages = Annotated[
    tuple[str, ...],
    Option("Keep names in these languages; the first is preferred.", "--lang", "en,zh"),
]


@dataclass(frozen=True, kw_only=True)
class SourceConfig:
    """A file or folder to read, with its settings; an empty filter keeps everything."""

    path: Path
    format: Annotated[str, Option("Format of the sources; default: detect.", metavar="F")] = ""
    languages: KeptLanguages = ()
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
    head: bytes
    """The first bytes of the (decompressed) file; empty for a folder."""
    members: frozenset[str] = frozenset()
    """File names in a folder; empty for a file."""

    @property
    def text(self) -> str:
        """The head as text, bytes outside UTF-8 replaced."""
        return self.head.decode("utf-8-sig", errors="replace")

    def lines(self, n: int = 20) -> list[str]:
        """Return the first complete lines of the head that are not empty."""
        lines = [line.rstrip("\r") for line in self.text.split("\n")]
        if len(lines) > 1 and not self.text.endswith("\n"):
            lines.pop()
        return [line for line in lines if line.strip()][:n]


@dataclass(frozen=True, slots=True)
class Format:
    """A format of ontology files; each reader module defines one."""

    recognise: Callable[[Probe], bool]
    read: Callable[[SourceConfig, ReadLog], Iterator[Item]]
    languages_inside: bool = True
    """Whether one file may hold names in several languages."""
    tabular: bool = False
    """Whether files are tables that a column mapping could describe as well."""


class Recogniser(Protocol):
    """A format that can recognise its files."""

    def recognise(self, probe: Probe, /) -> bool:
        """Whether the probe is of this format."""


R = TypeVar("R", bound=Recogniser)


def look_at(path: Path) -> Probe:
    """Probe a file, or the names in a folder."""
    if exists(path) and path.is_dir():
        return Probe(path, b"", frozenset(entry.name for entry in path.iterdir()))
    return Probe(path, read_head(path))


def look_into(path: Path) -> Probe:
    """Probe a file, or all names below a folder or in a zip archive."""
    if exists(path) and path.is_dir():
        names = (each.name for each in path.rglob("*") if not each.name.startswith("."))
        return Probe(path, b"", frozenset(names))
    if zipfile.is_zipfile(path):
        return Probe(path, b"", _members(path))
    return Probe(path, read_head(path))


def _members(path: Path) -> frozenset[str]:
    with open_zip(path) as archive:
        return frozenset(Path(name).name for name in archive.namelist())


def find_format(probe: Probe, formats: Registry[R], problem: str, hint: str = "") -> str:
    """Name the first format that recognises what the probe shows.

    If there is none, ``problem`` says so, and ``hint`` how to name the right one.
    """
    for name, form in formats.load_all():
        if form.recognise(probe):
            return name
    refuse_utf16(probe.head, probe.path)
    raise UnrecognisedError(
        problem,
        path=probe.path,
        line=1 if probe.head else None,
        text=next(iter(probe.lines(1)), "") if probe.head else None,
        remedy=f"name the format, one of {', '.join(formats)}{hint and f' ({hint})'}",
    )
