"""The Chinese disease table: aliases, lists in cells, and rows that have slipped."""

import gzip
from functools import partial
from pathlib import Path

import pytest

from biograft.errors import EncodingError, FormatError, InputError
from biograft.records import NameKind, NameRecord, RelationRecord, TypeRecord
from biograft.sources import Probe, read_head
from biograft.sources.chinese import DISEASE_TABLE

HEADER = "name,alias,part,age,department,checklist,symptom,complication,treatment,drug,,\n"
ROW = (
    '乙肝,"乙型肝炎,乙肝",肝,成人,传染科 肝病,肝功 [详细],乏力,肝硬化,药物治疗,'
    "恩替卡韦 注射用... >>,,\n"
)


@pytest.fixture
def reading(reading):
    return partial(reading, format="zh-alias")


def claims(path: Path) -> bool:
    return DISEASE_TABLE.recognise(Probe(path, read_head(path)))


def row(name: str, alias: str = "") -> str:
    return f'{name},"{alias}",,,,,,,,,,\n'


def entity(name: str, kind: str) -> list[object]:
    return [
        NameRecord(name, name, "zh", NameKind.PREFERRED, line=2),
        TypeRecord(name, kind, kind, line=2),
    ]


def related(relation: str, tail: str, kind: str) -> list[object]:
    return [*entity(tail, kind), RelationRecord("乙肝", relation, tail, line=2)]


def test_a_row_gives_all_its_facts(write, reading):
    result = reading(write("a.csv", (HEADER + ROW).encode("gb18030")))
    assert result.records == [
        *entity("乙肝", "Disease"),
        NameRecord("乙肝", "乙型肝炎", "zh", NameKind.SYNONYM, line=2),
        *related("body_part", "肝", "Body"),
        *related("belongs_to_department", "传染科", "Department"),
        *related("belongs_to_department", "肝病", "Department"),
        *related("need_check", "肝功", "Check"),
        *related("has_symptom", "乏力", "Symptom"),
        *related("has_complication", "肝硬化", "Disease"),
        *related("common_drug", "恩替卡韦", "Drug"),
    ]
    assert result.log.rejected.counts == {"cut short in the source": 1}
    assert result.log.filtered == {"text of the web page": 2}


@pytest.mark.parametrize("encoding", ["gb18030", "utf-8", "utf-8-sig"])
def test_recognised_in_either_encoding(write, reading, encoding):
    path = write("a", gzip.compress((HEADER + ROW).encode(encoding)))
    assert claims(path)
    assert reading(path).concepts >= {"乙肝", "恩替卡韦"}


def test_a_character_cut_at_the_end_of_the_head_does_not_mislead(write, reading):
    path = write("a", (HEADER + row("甲") + row("乙" * 40_000)).encode("gb18030"))
    assert claims(path)
    assert "甲" in reading(path).concepts


@pytest.mark.parametrize(
    "text", ["name,alias\na,b\n", "name,alias,part\na,b,c\n", "id,name\n甲,乙\n", "\n"]
)
def test_other_tables_are_not_claimed(write, text):
    assert not claims(write("a", text.encode("gb18030")))


@pytest.mark.parametrize(
    ("cell", "aliases"),
    [
        ("骨蚀、股骨头坏死，寿斑;疣；痣,,", ["骨蚀", "股骨头坏死", "寿斑", "疣", "痣"]),
        ("热淋 下尿路感染", ["热淋", "下尿路感染"]),
        ("Huntington 病,ovarian tumour", ["Huntington 病", "ovarian tumour"]),
        ("老年性色素斑(痣)[详细]", ["老年性色素斑(痣)"]),
    ],
)
def test_aliases_are_separated_by_any_punctuation(write, reading, cell, aliases):
    result = reading(write("a", HEADER + row("甲", cell)))
    assert [r.text for r in result.of(NameRecord)[1:]] == aliases


def test_the_line_is_where_the_row_begins(write, reading):
    result = reading(write("a", HEADER + row("甲", "a\nb") + row("乙")))
    assert {r.concept: r.line for r in result.of(TypeRecord)} == {"甲": 2, "乙": 4}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (row(""), "no name"),
        (row("类风湿..."), "cut short in the source"),
        (row("甲", "类风湿..."), "cut short in the source"),
        ("a,b\n", "2 cells, expected 12"),
        ("a,b,,,,,,,,,,x\n", "cells without a column, so the row is shifted"),
        ('a,"b"c,,,,,,,,,,\n', "not CSV (',' expected after '\"')"),
    ],
)
def test_a_faulty_row_is_rejected_with_its_line(write, reading, line, reason):
    result = reading(write("a", HEADER + row("丙") + line + "\n" + row("丁")))
    assert result.log.rejected.counts == {reason: 1}
    assert result.log.rejected.examples[reason][0].line == 3
    assert result.concepts >= {"丙", "丁"}
    assert result.log.n_read == 3


def test_a_name_on_two_rows_is_doubtful_and_both_are_read(write, reading):
    result = reading(write("a", HEADER + row("丙") + row("丙", "丁")))
    assert [r.text for r in result.of(NameRecord)] == ["丙", "丁"]
    assert (result.log.rejected.counts, result.log.doubtful.counts) == ({}, {"id defined twice": 1})
    assert result.log.doubtful.examples["id defined twice"][0].line == 3


def test_unclosed_quotes_are_reported_with_their_first_line(write, reading):
    for rest in ("", row("乙") * 20_000):
        with pytest.raises(FormatError, match=r"a:2: a quoted cell is not closed"):
            reading(write("a", HEADER + '甲,"乙\n' + rest.replace('"', "")))


def test_a_table_without_the_columns_is_reported(write, reading):
    with pytest.raises(FormatError, match="expected columns name and alias"):
        reading(write("a", "id,title\n"))


def test_damage_is_reported(write, reading):
    data = (HEADER + ROW * 50).encode("gb18030")
    with pytest.raises(InputError, match="cut short"):
        reading(write("a.gz", gzip.compress(data)[:-12]))
    with pytest.raises(EncodingError, match="a:52: "):
        reading(write("a", data + b"\xff\xff\n"))
    with pytest.raises(EncodingError, match=r"a:2: byte 0xd2 is not ascii"):
        reading(write("a", data), encoding="ascii")


def test_the_language_can_be_named(write, reading):
    result = reading(write("a", HEADER + row("甲", "乙")), language="jpn")
    assert {r.language for r in result.of(NameRecord)} == {"ja"}
