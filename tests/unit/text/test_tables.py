"""Tables of any format: one content gives one set of rows; damage and wrong names are reported."""

from __future__ import annotations

import json
import zipfile
from datetime import date, datetime

import numpy as np
import openpyxl
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biograft.errors import BiograftError, FormatError, InputError
from biograft.kb.sources import ReadLog
from biograft.text import InputConfig, Inputs, read_table

ROWS = [("1", "hart atack"), ("2", ""), ("3", "糖尿病")]


def rows(path, *columns, sheet="", log=None):
    return list(read_table(path, columns, log or ReadLog(path), sheet=sheet))


def save_xlsx(path, *sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, lines in sheets:
        sheet = book.create_sheet(name)
        for line in lines:
            sheet.append(line)
    book.save(path)
    return path


@pytest.fixture(params=["csv", "tsv", "jsonl", "xlsx", "parquet"])
def table(request, tmp_path):
    path, form = tmp_path / f"t.{request.param}", request.param
    frame = pl.DataFrame({"code": [int(c) for c, _ in ROWS], "term": [t for _, t in ROWS]})
    if form == "csv":
        frame.write_csv(path)
    elif form == "tsv":
        frame.write_csv(path, separator="\t")
    elif form == "jsonl":
        frame.write_ndjson(path)
    elif form == "parquet":
        frame.write_parquet(path)
    else:
        save_xlsx(
            path, ("Lab", [("code", "term"), (), (1, "hart atack"), (2, None), (3.0, "糖尿病")])
        )
    return path


def test_all_formats_give_the_same_cells(table):
    assert [cells for _, cells in rows(table, "term", "code")] == [
        {"term": term, "code": code} for code, term in ROWS
    ]


def test_a_column_that_is_missing_is_refused_with_the_nearest(table):
    with pytest.raises(FormatError, match=r"'trem'.*did you mean 'term'"):
        rows(table, "trem")
    with pytest.raises(FormatError, match=r"'cod'.*did you mean 'code'"):
        rows(table, "term", "cod")


def test_documents_are_read_from_every_format(table):
    read = list(Inputs([table], InputConfig(column="term", id_column="code")))
    assert [(d.id, d.text) for d in read] == [("1", "hart atack"), ("3", "糖尿病")]


def test_the_sheet_of_a_workbook(tmp_path):
    path = save_xlsx(
        tmp_path / "t.xlsx", ("a", [("term",), ("flu",)]), ("b", [("term",), ("HTN",)])
    )
    assert rows(path, "term") == [(2, {"term": "flu"})]
    assert rows(path, "term", sheet="b") == [(2, {"term": "HTN"})]
    with pytest.raises(FormatError, match=r"no sheet 'c'; known: a, b"):
        rows(path, "term", sheet="c")
    csv = tmp_path / "t.csv"
    csv.write_text("term\nflu\n")
    with pytest.raises(InputError, match="no sheets; leave --sheet out"):
        rows(csv, "term", sheet="a")


def test_values_of_a_workbook_are_text(tmp_path):
    line = (date(2026, 1, 2), datetime(2026, 1, 2, 3, 4), 0.1, True, "1+1")
    path = save_xlsx(tmp_path / "t.xlsx", ("a", [("d", "t", "x", "b", "f"), line]))
    ((_, cells),) = rows(path, "d", "t", "x", "b", "f")
    assert list(cells.values()) == ["2026-01-02", "2026-01-02T03:04:00", "0.1", "true", "1+1"]


def test_lists_in_a_parquet_file_are_refused(tmp_path):
    """They are not decoded, since a few bytes can hold lists of any length."""
    path = tmp_path / "t.parquet"
    pl.DataFrame({"x": [["a"], None]}).write_parquet(path)
    with pytest.raises(FormatError, match="the column 'x' holds lists"):
        rows(path, "x")


def test_a_text_that_all_rows_of_a_parquet_file_share_is_decoded_for_a_few_at_a_time(tmp_path):
    """Guards: 900 bytes took 13 GB, 65,536 rows of 200,000 characters at once."""
    path = tmp_path / "t.parquet"
    shared = pa.DictionaryArray.from_arrays(np.zeros(20_000, np.int32), ["x" * 1_000_000])
    pq.write_table(pa.table({"x": shared.cast(pa.dictionary(pa.int32(), pa.string()))}), path)
    assert path.stat().st_size < 200_000
    pool = pa.default_memory_pool()
    before = pool.bytes_allocated()
    for number, _ in enumerate(read_table(path, ["x"], ReadLog(path))):
        assert pool.bytes_allocated() - before < 300 << 20
        if number == 200:
            break
    assert number == 200


def test_a_column_of_a_parquet_file_that_becomes_too_large_is_refused(tmp_path):
    path = tmp_path / "t.parquet"
    table = pa.table({"x": ["x" * 30_000_000, "y" * 30_000_000, "z" * 30_000_000], "y": ["a"] * 3})
    pq.write_table(table, path, compression="zstd", use_dictionary=False)
    with pytest.raises(InputError, match="becomes more than 64 MiB and 200 times its size"):
        rows(path, "x")
    assert [cells for _, cells in rows(path, "y")] == [{"y": "a"}] * 3


def varint(number, size=0):
    """Write a number as Thrift does: zigzag, seven bits a byte, in at least so many bytes."""
    number, data = number * 2, bytearray()
    while number or len(data) < size or not data:
        data.append(number & 127 | 128)
        number >>= 7
    data[-1] &= 127
    return bytes(data)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [False, True])
def test_a_footer_that_tells_a_small_size_does_not_help(tmp_path, version, dictionary):
    """The sizes of pages are those of the pages themselves."""
    path = tmp_path / "t.parquet"
    table = pa.table({"x": ["x" * 30_000_000, "y" * 30_000_000, "z" * 30_000_000]})
    options = {"use_dictionary": dictionary, "dictionary_pagesize_limit": 1 << 30}
    pq.write_table(table, path, compression="zstd", data_page_version=version, **options)
    size = pq.read_metadata(path).row_group(0).column(0).total_uncompressed_size
    true, data = varint(size), path.read_bytes()
    assert true in data
    path.write_bytes(data.replace(true, varint(7, len(true))))
    assert pq.read_metadata(path).row_group(0).column(0).total_uncompressed_size == 7
    with pytest.raises(InputError, match="becomes more than 64 MiB and 200 times its size"):
        rows(path, "x")


@pytest.mark.parametrize("name", ["t.xlsx", "t.parquet"])
def test_a_damaged_file_is_one_line(tmp_path, name):
    path = tmp_path / name
    if name == "t.xlsx":
        save_xlsx(path, ("a", [("term",), *[(f"flu {n}",) for n in range(50)]]))
        with zipfile.ZipFile(path) as archive:
            parts = {n: archive.read(n) for n in archive.namelist()}
        with zipfile.ZipFile(path, "w") as archive:
            for part, data in parts.items():
                cut = data[: len(data) // 2] if part.startswith("xl/worksheets") else data
                archive.writestr(part, cut)
    else:
        pl.DataFrame({"term": ["flu"] * 50}).write_parquet(path)
        data = bytearray(path.read_bytes())
        data[4:60] = b"\xff" * 56
        path.write_bytes(data)
    with pytest.raises(BiograftError, match=r"cannot be read as a table .*save it again") as caught:
        rows(path, "term")
    assert "\n" not in str(caught.value)


def test_a_workbook_that_expands_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("BIOGRAFT_MAX_EXPANSION", "1")
    path = save_xlsx(tmp_path / "t.xlsx", ("a", [("term",)]))
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/padding.xml", b" " * (4 << 20))
    with pytest.raises(InputError, match="becomes more than"):
        rows(path, "term")


def test_json_values_are_text(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps({"term": "flu", "n": 2.0, "b": True, "z": None}) + "\n")
    ((_, cells),) = rows(path, "term", "n", "b", "z")
    assert cells == {"term": "flu", "n": "2", "b": "true", "z": ""}


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


ZH = "编码,诊断\r\n001,糖尿病\r\n002,急性心肌梗死\r\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gbk", "gb18030", "utf-16"])
def test_the_encoding_of_a_table_is_recognised(tmp_path, encoding):
    path = write(tmp_path / "t.csv", ZH, encoding)
    inputs = Inputs([path], InputConfig(column="诊断", id_column="编码"))
    assert [(d.id, d.text) for d in inputs] == [("001", "糖尿病"), ("002", "急性心肌梗死")]
    noted = [note for note in inputs.notes if "GB18030" in note]
    assert bool(noted) == encoding.startswith("gb")


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("id,name\n1,créée à l'âge\n", "cp1252"),
        ("id,name\n1,Überempfindlichkeit\n2,Fußödem\n", "latin-1"),
        ("id,name\n1,당뇨병 고혈압 심근경색 폐렴 천식 골절 간염 위염 신부전 뇌졸중\n", "euc-kr"),
        ("id,name\n1,糖尿病、高血壓、心臟衰竭\n", "big5"),
    ],
)
def test_an_encoding_that_is_not_certain_is_refused(tmp_path, text, encoding):
    path = write(tmp_path / "t.csv", text, encoding)
    with pytest.raises(InputError, match=r"t\.csv:2: byte .*--encoding"):
        list(Inputs([path], InputConfig(column="name")))
    named = Inputs([path], InputConfig(column="name", encoding=encoding))
    assert next(document.text for document in named) in text


@pytest.mark.parametrize(
    "text",
    [
        "code;term\n1;asthma, mild\n2;gout, acute, left\n",
        '"code, old";term\n1;asthma, mild\n',
        "sep=;\r\ncode;term\r\n1;asthma, mild\r\n",
        ";;\r\nDiagnoses 2026;;\r\n;;\r\ncode;term;\r\n1;asthma, mild;\r\n;;\r\n\r\n",
        "code\tterm\n1\tasthma, mild\t\t\n",
        '#,code,term\n1,1,"asthma, mild"\n',
        "code;term\n1;asthma, mild\ncode;term\n",
    ],
    ids=["semicolons", "quoted", "sep", "titles", "empty cells", "number sign", "header again"],
)
def test_delimiters_titles_and_empty_rows_of_spreadsheets(tmp_path, text):
    path = write(tmp_path / "t.csv", text)
    log = ReadLog(path)
    assert rows(path, "term", log=log)[0][1] == {"term": "asthma, mild"}
    assert not log.rejected.counts


def test_a_sheet_with_titles_merged_cells_and_notes(tmp_path):
    book = openpyxl.Workbook()
    sheet = book.active
    for line in (
        [None, "Diagnoses 2026"],
        [None, "Code", "Term", None, "Since"],
        [None, 1234.0, "asthma", None, date(2026, 1, 2)],
        [None, "0012", None, None, None],
        [None, "A1", "gout", None, None, None, "a note under no header"],
        [None, 195967001123456789, "flu"],
        [None, None, None, None, None],
        [None, "Code", "Term", None, "Since"],
    ):
        sheet.append(line)
    sheet.merge_cells("B1:E1")
    sheet.merge_cells("C3:C4")
    sheet.insert_rows(2, 2)
    sheet.merged_cells.ranges.clear()
    sheet.merge_cells("B1:E1")
    sheet.merge_cells("C5:C6")
    path = tmp_path / "t.xlsx"
    book.save(path)
    log = ReadLog(path)
    assert rows(path, "Term", "Code", "Since", log=log) == [
        (5, {"Term": "asthma", "Code": "1234", "Since": "2026-01-02"}),
        (6, {"Term": "asthma", "Code": "0012", "Since": ""}),
        (7, {"Term": "gout", "Code": "A1", "Since": ""}),
        (8, {"Term": "flu", "Code": "1.95967001123457E+17", "Since": ""}),
    ]
    assert not log.rejected.counts


def test_numbers_with_zeros_in_front_and_hidden_sheets(tmp_path):
    book = openpyxl.Workbook()
    hidden, sheet = book.active, book.create_sheet("Data")
    hidden.append(["a", "b"])
    hidden.append([1, 2])
    hidden.sheet_state = "hidden"
    for line in (["Code", "Term"], [7, "asthma"], [1234567, "gout"], ["x", "flu"], [8, "HTN"]):
        sheet.append(line)
    for row in range(1, 5):
        sheet.cell(row, 1).number_format = "00000"
    path = tmp_path / "t.xlsx"
    book.save(path)
    codes = [cells["Code"] for _, cells in rows(path, "Code", "Term")]
    assert codes == ["00007", "1234567", "x", "8"]


def test_inline_strings_and_shared_formulas(tmp_path):
    """As WPS and exports of databases write them."""
    path = save_xlsx(tmp_path / "t.xlsx", ("a", [("x",)]))
    text = """<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>
    <row r="1"><c r="A1" t="inlineStr"><is><r><t>Co</t></r><r><t>de</t></r></is></c>
    <c r="B1" t="str"><f>"Te"&amp;"rm"</f><v>Term</v></c></row>
    <row r="2"><c r="A2" t="str"><f t="shared" ref="A2:A3" si="0">ROW()</f><v>002</v></c>
    <c r="B2" t="inlineStr"><is><t>flu</t></is></c></row>
    <row r="3"><c r="A3" t="str"><f t="shared" si="0"/><v>003</v></c>
    <c r="B3" t="b"><v>1</v></c></row>
    <row r="4"><c r="A4" t="e"><v>#REF!</v></c>
    <c r="B4" t="inlineStr"><is><t>gout</t></is></c></row>
    </sheetData></worksheet>"""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, text if name == "xl/worksheets/sheet1.xml" else data)
    found = [(cells["Code"], cells["Term"]) for _, cells in rows(path, "Code", "Term")]
    assert found == [("002", "flu"), ("003", "true"), ("", "gout")]


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("<html><meta charset=utf-8><table><tr><td>Term</table>", "HTML"),
        ('<?xml version="1.0"?><?mso-application progid="Excel.Sheet"?><Workbook/>', "XML"),
    ],
)
def test_what_is_only_named_like_a_workbook(tmp_path, content, what):
    path = write(tmp_path / "t.xls", content)
    with pytest.raises(InputError, match=rf"is no workbook but {what}; open it in .*save it as"):
        list(Inputs([path], InputConfig(column="Term")))
