"""Options for reading inputs, and the formats beside those of documents."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import Annotated

from biograft.config import Config, Doc, Option
from biograft.errors import ConfigError, nearest

TEXT, TABLE = "text", "table"
"""Formats beside those of documents: plain text, and a column of a table."""
HTML, DOCX = "html", "docx"
UTF_8 = "utf-8"


@dataclass(frozen=True, kw_only=True)
class InputConfig(Config):
    """Options for reading inputs."""

    format: Annotated[
        str,
        Option(
            "Format of the files: text, table, or one of `biograft corpus formats`; default: "
            "recognise each by its content.",
            metavar="FORMAT",
        ),
    ] = ""
    encoding: Annotated[
        str,
        Option(
            "Encoding of the files, such as gb18030, utf-16 or latin-1; XML states its own.",
            metavar="NAME",
        ),
    ] = UTF_8
    column: Annotated[
        str,
        Option(
            "For CSV, TSV, JSON lines, workbooks and Parquet: the column of the texts, by name or "
            "as #1; a row is a document.",
            metavar="NAME",
        ),
    ] = ""
    id_column: Annotated[
        str, Option("With --column: the column of the ids; default: line numbers.", metavar="NAME")
    ] = ""
    sheet: Annotated[
        str, Option("For a workbook: the sheet; default: the first with a table.", metavar="NAME")
    ] = ""
    lines: Annotated[bool, Doc("Each line of plain text is a document; else the file.")] = False
    skip_errors: Annotated[
        bool, Option("Leave out files that cannot be read, and report them at the end.")
    ] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.format == TABLE and not self.column:
            raise ConfigError("--format table: name the column that holds the texts (--column)")
        if self.format:
            from biograft.text.formats.format import DOCUMENT_FORMATS

            known = (TEXT, HTML, DOCX, TABLE, *DOCUMENT_FORMATS)
            if self.format not in known and self.format not in DOCUMENT_FORMATS:
                raise ConfigError(
                    f"--format: no format is called {self.format!r}; {nearest(self.format, known)}"
                )
        if self.column and self.format not in ("", TABLE, "jsonl"):
            raise ConfigError(
                f"--column: is for tables, not for {self.format}; leave one of them out"
            )
        for option, value in (("--id-column", self.id_column), ("--sheet", self.sheet)):
            if value and not self.column:
                raise ConfigError(f"{option}: name the column that holds the texts, too (--column)")
        try:
            b"".decode(self.encoding)
            codecs.getincrementaldecoder(self.encoding)
        except LookupError as error:
            raise ConfigError(f"--encoding: no encoding is called {self.encoding!r}") from error

    @property
    def is_utf8(self) -> bool:
        """Return True if files are read as they are."""
        return codecs.lookup(self.encoding).name == UTF_8
