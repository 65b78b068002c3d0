"""The Chinese disease table: aliases, lists in cells, and rows that have slipped."""

from functools import partial

import pytest

from biograft.kb.records import NameKind, NameRecord, RelationRecord, TypeRecord
from biograft.kb.sources import sniff

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


def test_a_character_cut_at_the_end_of_the_head_does_not_mislead(write, reading):
    path = write("a", (HEADER + row("甲") + row("乙" * 40_000)).encode("gb18030"))
    assert sniff(path) == "zh-alias"
    assert "甲" in reading(path).concepts


@pytest.mark.parametrize(
    ("cell", "aliases"),
    [
        ("骨蚀、股骨头坏死，寿斑;疣；痣,,", ["骨蚀", "股骨头坏死", "寿斑", "疣", "痣"]),
        ("Huntington 病,ovarian tumour", ["Huntington 病", "ovarian tumour"]),
        ("老年性色素斑(痣)[详细]", ["老年性色素斑(痣)"]),
    ],
)
def test_aliases_are_separated_by_any_punctuation(write, reading, cell, aliases):
    result = reading(write("a", HEADER + row("甲", cell)))
    assert [r.text for r in result.of(NameRecord)[1:]] == aliases
