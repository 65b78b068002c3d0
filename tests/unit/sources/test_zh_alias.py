"""The Chinese disease table: aliases, lists in cells, and rows that have slipped."""

import gzip
from functools import partial

import pytest

from biograft.errors import FormatError
from biograft.records import NameKind, NameRecord, RelationRecord, TypeRecord
from biograft.sources import sniff

HEADER = "name,alias,part,age,department,checklist,symptom,complication,treatment,drug,,\n"
ROW = (
    '乙肝,"乙型肝炎,乙肝",肝,成人,传染科 肝病,肝功 [详细],乏力,肝硬化,药物治疗,'
    "恩替卡韦 注射用... >>,,\n"
)


@pytest.fixture
def reading(reading):
    return partial(reading, format="zh-alias")


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
    assert sniff(path) == "zh-alias"
    assert reading(path).concepts >= {"乙肝", "恩替卡韦"}


def test_a_character_cut_at_the_end_of_the_head_does_not_mislead(write, reading):
    path = write("a", (HEADER + row("甲") + row("乙" * 40_000)).encode("gb18030"))
    assert sniff(path) == "zh-alias"
    assert "甲" in reading(path).concepts


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


def test_unclosed_quotes_are_reported_with_their_first_line(write, reading):
    for rest in ("", row("乙") * 20_000):
        with pytest.raises(FormatError, match=r"a:2: a quoted cell is not closed"):
            reading(write("a", HEADER + '甲,"乙\n' + rest.replace('"', "")))
