"""Ids with their labels in files of any kind, each with its line and column.

Tables pair columns by their names (``subject_id`` with ``subject_label``), JSON and YAML the keys
of an object (``id`` with ``label``, a FHIR ``code`` with its ``display``), OBO and Turtle by their
syntax; in any other text an id stands beside its label: ``[Seizure](HP:0001250)``,
``HP:0001250 (Seizure)``, ``HP:0001250 ! Seizure``, or the next cell of a table in Markdown.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import NamedTuple

from biograft.kb.sources.files import HEAD_BYTES, decode, open_bytes, shown_encoding
from biograft.kb.sources.table import find_delimiter
from biograft.kb.sources.workbooks import is_workbook, sheet_names
from biograft.registry import load_object

_ENDINGS = {
    "table": ".csv .tsv .tab .hpoa",
    "json": ".json .jsonl .ndjson .jsonld",
    "yaml": ".yaml .yml",
    "obo": ".obo",
    "turtle": ".ttl .nt",
}
Span = tuple[int, int]
"""Offsets of a part of a text."""
ID = re.compile(r"(?:https?://[^\s<>\"]+|[A-Za-z][\w.-]*:[\w.-]*[\w]|[A-Z]{0,3}\d[\w.-]*)")
"""A CURIE, an IRI, or a bare id."""


class Pair(NamedTuple):
    """An id as a file has it, its label, and where both stand."""

    id: str
    """The id as written."""
    label: str = ""
    """Its label; empty if there is none."""
    start: int = -1
    """Offset of the id in the text; -1: of a workbook, which has rows and columns instead."""
    end: int = -1
    """Offset behind the id; -1 if unknown."""
    label_start: int = -1
    """Offset of the label in the text; -1: none that can be rewritten."""
    label_end: int = -1
    """Offset behind the label; -1 if unknown."""
    row: int = 0
    """Row of a workbook."""
    column: str = ""
    """Column of a table, or key."""
    part: int = 0
    """Number of the id in a cell of several."""
    exact: bool = True
    """Whether the label is this text as a whole; otherwise it may begin later (prose)."""
    locate: Callable[[Pair], Pair] | None = None
    """Finds where a pair of a table stands, which is asked for only where something is wrong."""

    def located(self) -> Pair:
        """Return the pair with the offsets of its id and its label."""
        return self if self.locate is None else self.locate(self)


@dataclass
class SourceText:
    """A file that is verified: its text and its format."""

    path: Path
    """The file."""
    format: str
    """Format by which ids are found in it."""
    text: str = ""
    """Its content."""
    sheets: tuple[str, ...] = ()
    """Sheets of a workbook, which has no text."""

    @cached_property
    def starts(self) -> list[int]:
        """Offsets of the beginnings of lines, and of the one that would follow."""
        return [0, *(match.end() for match in re.finditer("\n", self.text)), len(self.text) + 1]

    @cached_property
    def first_row(self) -> tuple[int, str]:
        """The first line of a table that is not empty and no comment, with its number."""
        lines = enumerate(self.text.split("\n"), 1)
        return next(((n, line) for n, line in lines if line.strip() and line[0] != "#"), (1, ""))

    @property
    def delimiter(self) -> str:
        """The delimiter of a table."""
        return find_delimiter(self.first_row[1])

    def place(self, offset: int) -> tuple[int, int]:
        """Return the line and the column of an offset, from 1.

        Args:
            offset: Position in the text.
        """
        line = bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1

    @classmethod
    def open(cls, path: Path, form: str = "", encoding: str = "utf-8") -> SourceText:
        """Read a file, and recognise its format by its name, else by its content.

        Args:
            path: The file, which may be compressed.
            form: One of ``FORMATS``; default: recognised.
            encoding: Encoding of the text; GB18030 is recognised.
        """
        if is_workbook(path):
            return cls(path, "table", sheets=tuple(sheet_names(path)))
        with open_bytes(path) as file:
            data = file.read()
        text = decode(data, path, 1, shown_encoding(data[:HEAD_BYTES], encoding))
        return cls(path, form or _recognise(path, text), text)


def _recognise(path: Path, text: str) -> str:
    name = path.name.lower().removesuffix(".gz")
    for form, endings in _ENDINGS.items():
        if name.endswith(tuple(endings.split())):
            return form
    start = text.lstrip()[:2000]
    if start.startswith(("{", "[{", "[\n")):
        return "json"
    if re.match(r"(?:format-version:|\[Term\])", start):
        return "obo"
    return "turtle" if start.startswith(("@prefix", "PREFIX")) else "text"


_KEPT = 1 << 17
"""Texts of which it is kept whether they are ids."""
_READERS = {
    "table": "tables:table_pairs",
    "json": "objects:json_pairs",
    "yaml": "objects:yaml_pairs",
    "obo": "ontologies:obo_pairs",
    "turtle": "ontologies:turtle_pairs",
    "text": "prose:prose_pairs",
}


@dataclass
class PairFinder:
    """Finds the pairs of files, given which ids are looked for."""

    holds: Callable[[str], bool]
    """Whether an id or IRI is of a vocabulary that is looked for."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Columns or keys of the ``id`` and the ``label``; default: found by their names."""
    id_of: Callable[[str], str] = str
    """Gives the id of an IRI."""

    def find(self, source: SourceText) -> Iterator[Pair]:
        """Yield the pairs of a file, in its order.

        Args:
            source: The file.

        Raises:
            FormatError: The file is not what its format says, or has no such column.
        """
        read = load_object(f"{__package__}.{_READERS[source.format]}")
        yield from read(source, self)

    @cached_property
    def is_id(self) -> Callable[[str], bool]:
        """Whether a text is an id that is looked for; the same ids stand in many rows."""
        return lru_cache(_KEPT)(lambda text: bool(ID.fullmatch(text)) and self.holds(text))


_ID_KEY = re.compile(
    r"(.*?)[_.\s-]*(?:ids?|codes?|curies?|identifiers?|iris?|@id|编码|代码)$", re.IGNORECASE
)
LABEL_KEY = re.compile(
    r"(.*?)[_.\s-]*(?:labels?|names?|displays?|terms?|titles?|preflabel|的?名称)$", re.IGNORECASE
)
_STEMS = ("", "concept", "term", "class", "entity", "node")
"""Stems under which an id and a label belong together whatever the other one is called."""


@cache
def pair_keys(keys: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Pair the keys of ids with those of labels, by what stands before ``id`` and ``label``.

    Args:
        keys: Names of columns, or keys of an object.

    >>> pair_keys(("subject_id", "subject_label", "object_id", "comment"))
    (('subject_id', 'subject_label'), ('object_id', ''))
    >>> pair_keys(("id", "name", "description"))
    (('id', 'name'),)
    """
    labels: dict[str, str] = {}
    for key in keys:
        if (match := LABEL_KEY.fullmatch(key)) and not _ID_KEY.fullmatch(key):
            labels.setdefault(match[1].lower(), key)
    pairs = []
    for key in keys:
        if match := _ID_KEY.fullmatch(key):
            stem = match[1].lower()
            label = labels.get(stem, "")
            if not label and stem in _STEMS:
                label = next((labels[other] for other in _STEMS if other in labels), "")
            pairs.append((key, label))
    return tuple(pairs)
