"""Source formats: settings of a source, records and blocks, recognition of files by content."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from biograft.errors import UnrecognisedError
from biograft.records import Record
from biograft.registry import Registry
from biograft.sources.files import exists, open_zip, read_head, refuse_utf16

if TYPE_CHECKING:
    import polars as pl

    from biograft.sources.log import ReadLog


@dataclass(frozen=True, slots=True)
class Block:
    """A table of records of one type, whose columns are the fields of the record.

    Readers of very large tables yield blocks instead of single records.
    """

    record: type[Record]
    frame: pl.DataFrame


Item: TypeAlias = Record | Block


@dataclass(frozen=True, kw_only=True)
class SourceConfig:
    """A file or folder to read, with its settings; an empty filter keeps everything."""

    path: Path
    format: str = ""
    """Name of the format; empty: recognised by content."""
    languages: tuple[str, ...] = ()
    """Keep names and definitions in these languages (ISO 639-1); the first is the main one."""
    vocabularies: tuple[str, ...] = ()
    """Keep atoms of these vocabularies (``SAB`` of UMLS)."""
    keep_concepts_of: tuple[str, ...] = ()
    """Keep concepts with an atom of these vocabularies, and their atoms of all vocabularies."""
    term_types: tuple[str, ...] = ()
    """Keep atoms of these term types (``TTY`` of UMLS)."""
    relations: tuple[str, ...] = ()
    """Keep relations of these names."""
    keep_suppressed: bool = False
    """Keep records that the source marks as suppressed, obsolete, inactive or deprecated."""
    keep_codes: bool = False
    """Keep the codes of source vocabularies as cross-references (``CODE`` of UMLS)."""
    encoding: str = "utf-8"
    """Encoding of the file's text."""
    language: str = ""
    """Language of names in a format without languages; empty: the default of the format."""
    default_type: str = ""
    """Semantic type of concepts without one."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """For tables: the column of each role, as ``{"id": "code", "name": "label"}``."""
    separator: str = ""
    """For tables: the separator of several values in one cell; empty: ``|``."""
    same_as: tuple[str, ...] = ()
    """For triples: relations whose tail is a synonym of their head."""

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
