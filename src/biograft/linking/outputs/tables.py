"""Tables as files: CSV and TSV in any encoding, and workbooks (XLSX) for people who review them.

In a workbook a text is a text cell, so that codes keep their zeros and all of their digits, and
nothing that begins with ``=`` is a formula. What one types there stays text, too.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biograft.artifacts import new_file
from biograft.errors import ConfigError, MissingExtraError
from biograft.linking.outputs.findings import delimited_rows, neutral
from biograft.linking.outputs.output import encoded

if TYPE_CHECKING:
    from openpyxl import Workbook

XLSX = "xlsx"
DELIMITERS = {"csv": ",", "tsv": "\t"}
_ESCAPED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)")
"""Characters that a workbook does not hold as they are."""
_MAX_CELL, _MAX_ROWS, _MAX_WIDTH = 32_767, 1_048_576, 60
_PADDING = 2
_TEXT = "@"
"""The number format of text."""


def write_table(
    rows: Iterable[Sequence[Any]],
    path: Path,
    *,
    to: str = "csv",
    encoding: str = "utf-8",
    choices: Mapping[str, Sequence[str]] = {},
    overwrite: bool = False,
) -> int:
    """Write a table; return the number of rows below the header. A failure leaves nothing.

    Args:
        rows: The header, then the rows.
        path: File to write.
        to: ``csv``, ``tsv`` or ``xlsx``.
        encoding: Encoding of CSV and TSV.
        choices: Values among which the reviewer chooses in a workbook, by column.
        overwrite: Replace an existing file.

    Raises:
        ConfigError: The format or the encoding does not hold a text.
    """
    n = -1
    with new_file(path, overwrite=overwrite) as file:
        if to == XLSX:
            table = [[_cell(value) for value in row] for row in rows]
            _workbook(table, choices).save(file)
            return len(table) - 1
        encode = text_encoder(encoding)
        for n, row in enumerate(rows):  # noqa: B007
            file.write(encode(delimited_rows([row], DELIMITERS[to])))
    return n


def check_encoding(encoding: str, form: str) -> None:
    """Refuse an encoding that is unknown, or of a format that has but one.

    Args:
        encoding: Name of the encoding.
        form: Format of the output.

    Raises:
        ConfigError: It is refused.
    """
    text_encoder(encoding)
    if encoding != "utf-8" and form not in DELIMITERS:
        raise ConfigError(f"--out-encoding: is for csv and tsv, not for {form}; leave it out")


def text_encoder(encoding: str) -> Callable[[str], bytes]:
    """Return a function that encodes the text of a file, piece by piece.

    Args:
        encoding: Name of the encoding; ``utf-8-sig`` is UTF-8 as Excel recognises it.

    Raises:
        ConfigError: No encoding has this name.
    """
    try:
        encoder = codecs.getincrementalencoder(encoding)()
        "".encode(encoding)
    except (LookupError, TypeError) as error:
        raise ConfigError(f"--out-encoding: no encoding is called {encoding!r}") from error

    def encode(text: str) -> bytes:
        try:
            return encoder.encode(encoded(text).decode())
        except UnicodeEncodeError as error:
            raise ConfigError(
                f"--out-encoding: {encoding} has no {error.object[error.start]!r}; gb18030 and "
                "utf-8-sig have all characters"
            ) from error

    return encode


def _workbook(table: Sequence[Sequence[Any]], choices: Mapping[str, Sequence[str]]) -> Workbook:
    """Return a workbook with one sheet: a header that stays in view, text cells and numbers."""
    try:
        import openpyxl
        from openpyxl.cell import WriteOnlyCell
        from openpyxl.utils import get_column_letter
        from openpyxl.worksheet.datavalidation import DataValidation
    except ImportError as error:
        raise MissingExtraError("tables", "writing workbooks") from error
    if len(table) > _MAX_ROWS:
        raise ConfigError(
            f"a workbook has up to {_MAX_ROWS:,} rows, found {len(table):,}; write CSV instead"
        )
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("biograft")
    sheet.freeze_panes = "A2"
    header = table[0]
    for k, name in enumerate(header):
        letter = get_column_letter(k + 1)
        column = sheet.column_dimensions[letter]
        widest = max(len(str(row[k])) for row in table if row[k] is not None)
        column.width, column.number_format = min(widest, _MAX_WIDTH) + _PADDING, _TEXT
        if name in choices:
            listed = DataValidation(type="list", formula1=f'"{",".join(choices[name])}"')
            listed.add(f"{letter}2:{letter}{_MAX_ROWS}")
            sheet.data_validations.append(listed)
    for row in table:
        cells = []
        for value in row:
            cell = WriteOnlyCell(sheet)
            if isinstance(value, str):
                cell.value, cell.data_type, cell.number_format = value, "s", _TEXT
            else:
                cell.value = value
            cells.append(cell)
        sheet.append(cells)
    return book


def _cell(text: Any) -> Any:
    """Return a value as a workbook holds it; ``plain`` gives back a text."""
    if not isinstance(text, str):
        return text
    if len(text) > _MAX_CELL:
        raise ConfigError(
            f"a cell of a workbook has up to {_MAX_CELL:,} characters, found {len(text):,} "
            f"({text[:40]!r}...); write CSV instead"
        )
    quoted = neutral(text) if text.startswith("'") else text
    return _ESCAPED.sub(lambda found: f"_x{ord(found[0]):04X}_", encoded(quoted).decode())
