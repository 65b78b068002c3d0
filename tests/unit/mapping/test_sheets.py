"""Spreadsheets as people save them: what was written is read again, whatever program saved it."""

from __future__ import annotations

import codecs
import zipfile
from datetime import UTC, date, datetime

import openpyxl
import pytest
import python_calamine

from biograft.errors import ConfigError, FormatError
from biograft.kb.sources.workbooks import read_sheet
from biograft.linking import ConceptIds
from biograft.linking.outputs.tables import write_table
from biograft.mapping import (
    Decision,
    EarlierDecisions,
    MappingRun,
    MappingSet,
    ReviewStore,
    SourceTerm,
    export_review,
    import_review,
    map_terms,
    read_earlier,
    write_mapping,
)

CODES = ["001", "195967001123456789", "1.10", "3-1", "1E5", "TRUE", ""]
TEXTS = ["=1+1", "+ rash", "-", "@home", "'=quoted", "'n", "_x0041_", "#N/A", "发热", "a\u2028b"]
TERMS = [
    *(SourceTerm("fever", code, 2) for code in CODES),
    *(SourceTerm(text, f"T{n}") for n, text in enumerate(TEXTS)),
]


@pytest.fixture
def run(kb):
    return MappingRun(kb=kb, ids=ConceptIds(kb), k=2, time=datetime(2026, 11, 24, tzinfo=UTC))


@pytest.fixture
def mapped(linker, run, tmp_path):
    """A mapped workbook in which all rows are decided."""
    path = tmp_path / "mapped.xlsx"
    write_mapping(map_terms(linker, TERMS), path, run, to="xlsx")
    book = openpyxl.load_workbook(path)
    sheet = book.active
    column = {cell.value: cell.column for cell in sheet[1]}
    for row in range(2, sheet.max_row + 1):
        found = sheet.cell(row, column["concept"]).value
        sheet.cell(row, column["verdict"]).value = "Approved" if found else "nil"
    book.save(path)
    return path


def edit(path, change):
    book = openpyxl.load_workbook(path)
    change(book.active)
    book.save(path)


def decided(path):
    return [(each.term, each.code, each.concept, each.verdict) for each in read_earlier(path)]


def test_a_workbook_keeps_codes_and_texts(mapped):
    assert [(term, code) for term, code, *_ in decided(mapped)] == [
        (term.text.replace("\u2028", " "), term.code) for term in TERMS
    ]


def test_nothing_in_a_workbook_is_a_formula(linker, run, tmp_path):
    path = tmp_path / "mapped.xlsx"
    write_mapping(map_terms(linker, TERMS), path, run, to="xlsx")
    sheet = openpyxl.load_workbook(path).active
    cells = [cell for row in sheet.iter_rows(min_row=2) for cell in row if cell.value is not None]
    assert {cell.data_type for cell in cells} == {"s", "n"}
    assert all(cell.number_format == "@" for cell in cells if cell.data_type == "s")
    assert [cell.value for cell in sheet["A"]][len(CODES) + 1 :][:4] == TEXTS[:4]


def test_reviewers_choose_verdict_and_relation_from_lists(mapped):
    sheet = openpyxl.load_workbook(mapped).active
    lists = [each.formula1 for each in sheet.data_validations.dataValidation]
    assert lists == ['"exact,broad,narrow,close,related"', '"approved,rejected,nil"']


@pytest.mark.parametrize(
    "change",
    [
        lambda sheet: sheet.insert_rows(1, 2),
        lambda sheet: sheet.insert_cols(1, 2),
        lambda sheet: (sheet.insert_rows(1), sheet.cell(1, 1, "Reviewed by Ann, 2026")),
        lambda sheet: [sheet.append(["", None, " "]) for _ in range(5)],
        lambda sheet: (sheet.cell(1, 20, "my note"), sheet.cell(3, 20, "see above")),
        lambda sheet: sheet.cell(4, 22, "a note under no header"),
        lambda sheet: sheet.move_range("A1:A20", cols=30),
    ],
    ids=["blank rows", "blank columns", "title", "rows below", "own column", "note", "moved"],
)
def test_a_sheet_that_was_edited_applies(mapped, change):
    expected = decided(mapped)
    edit(mapped, change)
    assert decided(mapped) == expected


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030", "utf-16"])
def test_a_sheet_that_was_saved_as_csv_applies(mapped, tmp_path, delimiter, encoding):
    """As Excel saves it: its separator, a decimal comma, empty cells at the end of all rows."""
    sheet = python_calamine.CalamineWorkbook.from_path(str(mapped)).get_sheet_by_index(0)
    rows = [["", ""], *([*map(str, row), ""] for row in sheet.to_python()), [""] * 9]
    if delimiter == ";":
        rows = [[cell.replace("0.", "0,") for cell in row] for row in rows]
    quoted = [[f'"{c}"' if delimiter in c else c for c in row] for row in rows]
    path = tmp_path / "saved.csv"
    text = "\r\n".join(map(delimiter.join, quoted))
    path.write_bytes(text.encode(encoding))
    assert decided(path) == decided(mapped)


def test_a_review_goes_through_a_workbook(mapped, tmp_path):
    pytest.importorskip("sqlalchemy")
    sheet = tmp_path / "sheet.xlsx"
    with ReviewStore.open(tmp_path / "r.db", create=True) as store:
        done = import_review(store, mapped, reviewer="ann")
        assert (done.n_added, done.n_decided, done.problems) == (len(TERMS), len(TERMS), ())
        assert export_review(store, sheet) == len(TERMS)
        assert import_review(store, sheet, reviewer="bob").n_unchanged == len(TERMS)

        def change(cells):
            column = {cell.value: cell.column for cell in cells[1]}
            cells.cell(2, column["decision"]).value = "nil"
            cells.cell(2, column["concept"]).value = None
            cells.cell(2, column["review_id"]).value = 1.0

        edit(sheet, change)
        done = import_review(store, sheet, reviewer="bob")
        assert (done.n_decided, done.n_unchanged) == (1, len(TERMS) - 1)


def test_a_rounded_code_is_refused(mapped, tmp_path):
    def round_code(sheet):
        sheet["G3"].value = 195967001123456789
        sheet["G3"].number_format = "General"

    edit(mapped, round_code)
    message = r"mapped.xlsx:3: source_code: '1.95967001123457E\+17' is a rounded number.*as text"
    with pytest.raises(FormatError, match=message):
        read_earlier(mapped)
    path = tmp_path / "saved.csv"
    path.write_text("source_term,concept,verdict\nfever,1.23457E+17,approved\n")
    with pytest.raises(FormatError, match=r"saved.csv:2: concept: '1.23457E\+17'"):
        read_earlier(path)


def test_a_mapping_set_that_a_spreadsheet_saved(tmp_path):
    """Its metadata are cells, those of the rest are empty, and dates are dates."""
    path, book = tmp_path / "set.sssom.tsv", tmp_path / "set.xlsx"
    made = [
        Decision(term="MI", concept="HP:8", verdict="approved", author="Ada", time="2026-01-02")
    ]
    MappingSet.of_decisions(made, source="lab").write(path)
    sheet = openpyxl.Workbook()
    lines = [line.split("\t") for line in path.read_text().splitlines()]
    for line in lines:
        cells = [date.fromisoformat(cell) if cell == "2026-01-02" else cell for cell in line]
        sheet.active.append(cells)
    sheet.save(book)
    width = max(map(len, lines))
    rows = [line + [""] * (width - len(line)) for line in lines]
    saved = tmp_path / "saved.csv"
    saved.write_text("\n".join(",".join(f'"{c}"' if "," in c else c for c in r) for r in rows))
    expected = MappingSet.read(path)
    for each in (book, saved):
        found = MappingSet.read(each)
        assert (found.rows, found.prefixes) == (expected.rows, expected.prefixes)
        assert read_earlier(each) == made


def test_a_table_in_other_encodings(mapped, linker, run, tmp_path):
    path = tmp_path / "m.csv"
    for encoding, mark in (("utf-8-sig", codecs.BOM_UTF8), ("utf-16", codecs.BOM_UTF16)):
        write_mapping(map_terms(linker, TERMS), path, run, encoding=encoding, overwrite=True)
        data = path.read_bytes()
        assert data.startswith(mark)
        assert data.count(mark) == 1
        assert "\n发热,".encode(encoding).removeprefix(mark) in data
    with pytest.raises(ConfigError, match="latin-1 has no '发'; gb18030"):
        write_mapping(map_terms(linker, TERMS), path, run, encoding="latin-1", overwrite=True)
    with pytest.raises(ConfigError, match="no encoding is called 'gbq'"):
        write_mapping(map_terms(linker, TERMS), path, run, encoding="gbq", overwrite=True)


def test_what_no_workbook_holds_is_refused(tmp_path):
    path = tmp_path / "t.xlsx"
    with pytest.raises(ConfigError, match="up to 32,767 characters, found 40,000"):
        write_table([["a"], ["x" * 40_000]], path, to="xlsx")
    assert not path.exists()
    write_table([["a"], ["a\x01\ud800"]], path, to="xlsx")
    assert zipfile.is_zipfile(path)


def test_decisions_of_a_sheet_are_applied(mapped, kb, linker):
    earlier = EarlierDecisions(read_earlier(mapped), kb)
    flags = [each.flag for each in map_terms(linker, TERMS, earlier)]
    assert flags == ["seen"] * len(TERMS)
    assert earlier.n_unused == 0


def test_a_formula_that_was_never_computed_is_one_line(tmp_path):
    """It read as an empty cell."""
    path = tmp_path / "t.xlsx"
    book = openpyxl.Workbook()
    book.active.append(["code", "term"])
    book.active.append(["1", '="fe" & "ver"'])
    book.create_sheet("whole").append(["fever", "cough"])
    book.save(path)
    with pytest.raises(FormatError, match="B2 of 'Sheet' is a formula that was never computed"):
        list(read_sheet(path))
    assert list(read_sheet(path, "whole")) == [(1, ["fever", "cough"])]
