"""Workbooks (XLSX, XLSM, XLSB, XLS, ODS): the rows of a sheet as texts."""

from __future__ import annotations

import itertools
import re
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from biograft.errors import FormatError, MissingExtraError, import_extra, nearest
from biograft.kb.sources.files import ExpansionLimit, exists, open_stored, open_zip

if TYPE_CHECKING:
    from python_calamine import CalamineSheet, CalamineWorkbook

_OLD_EXCEL = b"\xd0\xcf\x11\xe0"
_OLD_SUFFIXES = (".xls", ".xlt", ".et", ".ett")  # the latter two of WPS
_ZIP = b"PK\x03\x04"
_MEMBERS = ("xl/workbook.xml", "xl/workbook.bin")
_STYLES, _ZEROS = "xl/styles.xml", re.compile(rb'formatCode="00+"')
_SHEETS, _UNCOMPUTED = (
    re.compile(r"xl/worksheets/[^/]+\.xml"),
    re.compile(
        rb'<c\b(?![^>]*\bt="str")[^>]*\br="([A-Z]+\d+)"[^>]*>\s*<f\b[^>]*(?:/>|>[^<]*</f>)\s*'
        rb"(?:<v\s*/>|<v>\s*</v>)?\s*</c>"
    ),
)
"""Files of the sheets, and a cell in one whose formula has no value, not even an empty text."""
_MAX_WHOLE = 10**15
_ROUNDED = re.compile(r"[+-]?\d(?:[.,]\d+)?[Ee]\+\d+")
_ODS = b"application/vnd.oasis.opendocument.spreadsheet"


def is_workbook(path: Path) -> bool:
    """Whether a file is a workbook, by its content.

    Args:
        path: The file; a folder or a missing file is none.
    """
    if not (exists(path) and path.is_file()):
        return False
    with open_stored(path) as file:
        magic = file.read(len(_ZIP))
    if magic == _OLD_EXCEL:
        return path.suffix.lower() in _OLD_SUFFIXES
    if magic != _ZIP or not zipfile.is_zipfile(path):
        return False
    with open_zip(path) as archive:
        names = set(archive.namelist())
        if any(name in names for name in _MEMBERS):
            return True
        return "mimetype" in names and archive.read("mimetype").strip() == _ODS


def read_sheet(path: Path, sheet: str = "") -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a sheet that are not empty, with their numbers.

    A row is at least as wide as those before; cells are the texts that the sheet shows, without
    number formats. All rows of cells that were merged have their value.

    Args:
        path: The workbook.
        sheet: Name of the sheet; by default the first with a table, that is, with two rows of two
            cells, among those that are not hidden.

    Raises:
        FormatError: The file is damaged or encrypted, has no such sheet, or no value of a formula.
    """
    with _damage_explained(path), _open(path) as book:
        chosen = _choose(book, path, sheet)
        _refuse_uncomputed(path, chosen.name)
        top, left = chosen.start or (0, 0)
        merged, padded = _merged_columns(chosen), _padded_cells(path, chosen.name)
        shown: dict[tuple[int, int], str] = {}
        width = 0
        for row, values in enumerate(chosen.iter_rows(), top):
            cells = [cell_text(value) for value in values]
            for column, width_shown in padded.get(row, {}).items():
                cells[column - left] = cells[column - left].zfill(width_shown)
            while cells and not cells[-1] and len(cells) > width:
                cells.pop()
            if any(cells):
                width = max(width, len(cells))
                cells += [""] * (width - len(cells))
                for column, first in merged.get(row, {}).items():
                    if column - left < width:
                        key = (first, column)
                        cells[column - left] = shown.setdefault(key, cells[column - left])
                yield row + 1, cells


def _refuse_uncomputed(path: Path, sheet: str) -> None:
    """Refuse a sheet with a formula that no program has computed: it would read as empty."""
    found: set[str] = set()
    if zipfile.is_zipfile(path):
        with open_zip(path) as archive:
            for name in filter(_SHEETS.fullmatch, archive.namelist()):
                found |= {each.decode() for each in _UNCOMPUTED.findall(archive.read(name))}
    if not found:
        return
    openpyxl = import_extra("openpyxl", "reading formulas")
    with closing(openpyxl.load_workbook(path, read_only=True)) as book:
        for cell in itertools.chain.from_iterable(book[sheet].iter_rows()):
            if cell.data_type == "f" and cell.coordinate in found:
                raise FormatError(
                    f"{cell.coordinate} of {sheet!r} is a formula that was never computed",
                    path=path,
                    remedy="open it in a spreadsheet program and save it, or write the values",
                )


def _padded_cells(path: Path, sheet: str) -> dict[int, dict[int, int]]:
    """Return the cells of a sheet whose number format, such as 00000, shows zeros in front."""
    found: dict[int, dict[int, int]] = {}
    with open_zip(path) if zipfile.is_zipfile(path) else nullcontext() as archive:
        if not (archive and _STYLES in archive.namelist() and _ZEROS.search(archive.read(_STYLES))):
            return found
    openpyxl = import_extra("openpyxl", "reading numbers with zeros in front")
    try:
        with warnings.catch_warnings(action="ignore"):
            book = openpyxl.load_workbook(path, read_only=True)
        with closing(book):
            for cell in itertools.chain.from_iterable(book[sheet].iter_rows()):
                code = cell.number_format if isinstance(cell.value, int | float) else ""
                if code and not code.strip("0"):
                    found.setdefault(cell.row - 1, {})[cell.column - 1] = len(code)
    except (
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
    ) as error:  # styles that are no valid XML
        raise FormatError(
            "has numbers with zeros in front, and its number formats cannot be read",
            path=path,
            remedy="save it again, or as .csv",
        ) from error
    return found


def _merged_columns(sheet: CalamineSheet) -> dict[int, dict[int, int]]:
    """Return the columns with merged cells of each row, and the first row of each of these."""
    found: dict[int, dict[int, int]] = {}
    for (top, left), (bottom, _) in sheet.merged_cell_ranges or ():
        last = min(bottom, (sheet.end or (0, 0))[0])
        for row in range(top, last + 1 if bottom > top else top):
            found.setdefault(row, {})[left] = top
    return found


def sheet_names(path: Path) -> list[str]:
    """Return the names of the sheets of a workbook.

    Args:
        path: The workbook.
    """
    with _damage_explained(path), _open(path) as book:
        return list(book.sheet_names)


def cell_text(value: object) -> str:
    """Return the value of a cell as a spreadsheet shows it, without its number format.

    Args:
        value: Text, number, truth value, date or bytes.

    >>> cell_text(None), cell_text(7.0), cell_text(True), cell_text(195967001123456789.0)
    ('', '7', 'true', '1.95967001123457E+17')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        # spreadsheets keep 15 digits: those of a longer code are lost
        is_whole = value.is_integer() and abs(value) < _MAX_WHOLE
        return str(int(value)) if is_whole else f"{value:.15G}"
    if isinstance(value, datetime) and not (value.hour or value.minute or value.second):
        return value.date().isoformat()
    if isinstance(value, date):  # a datetime is one, too
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return str(value)


def lost_digits(cell: str) -> str:
    """Return why a cell is no code: a spreadsheet rounded it; empty if it may be one.

    >>> lost_digits("1.23457E+17"), lost_digits("195967001")
    ("'1.23457E+17' is a rounded number: a spreadsheet has lost digits of a code", '')
    """
    if not _ROUNDED.fullmatch(cell.strip()):
        return ""
    return f"{cell.strip()!r} is a rounded number: a spreadsheet has lost digits of a code"


KEEP_DIGITS = "export it again, with the column of codes as text (in Excel: format cells, text)"
"""Remedy for `lost_digits`."""


def _open(path: Path) -> CalamineWorkbook:
    try:
        from python_calamine import CalamineWorkbook
    except ImportError as error:
        raise MissingExtraError("tables", "reading workbooks") from error
    if zipfile.is_zipfile(path):
        with open_zip(path) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
        ExpansionLimit(path).check(path.stat().st_size, unpacked)
    return CalamineWorkbook.from_path(str(path))


def _choose(book: CalamineWorkbook, path: Path, sheet: str) -> CalamineSheet:
    from python_calamine import SheetVisibleEnum

    names = list(book.sheet_names)
    if sheet:
        if sheet not in names:
            raise FormatError(f"has no sheet {sheet!r}", path=path, remedy=nearest(sheet, names))
        return book.get_sheet_by_name(sheet)
    shown = [each.name for each in book.sheets_metadata if each.visible == SheetVisibleEnum.Visible]
    sheets = [book.get_sheet_by_name(name) for name in shown or names]
    if not sheets:
        raise FormatError("has no sheet", path=path, remedy="check the file")
    return next((each for each in sheets if each.height > 1 and each.width > 1), sheets[0])


@contextmanager
def _damage_explained(path: Path) -> Iterator[None]:
    """Turn the errors of the library into one clear line."""
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith("python_calamine"):
            raise
        encrypted = type(error).__name__ == "PasswordError"
        problem = "is encrypted" if encrypted else f"cannot be read as a table ({error})"
        raise FormatError(
            problem, path=path, remedy="save it again, without a password, or as .csv"
        ) from error
