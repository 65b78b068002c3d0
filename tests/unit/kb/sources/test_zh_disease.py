"""Chinese disease pages: what each page gives, and what is wrong in one."""

import json
from functools import partial

import pytest

from biograft.kb.records import (
    DefinitionRecord,
    IdKind,
    IdRecord,
    NameKind,
    NameRecord,
    RelationRecord,
    TypeRecord,
)

PAGE = {
    "id": "medical_0/0",
    "gaishu_info": {
        "name": "百日咳",
        "desc": "急性呼吸道传染病。\r\n\r\n\t多见于小儿。",
        "has_complication": ["肺不张"],
        "belongs_to_department": ["儿科"],
        "common_drug": ["  百咳静糖浆", ""],
        "treat_way": ["药物治疗"],
    },
    "symptom_data": {"symptoms": ["干咳", "发热伴咳嗽、咯..."]},
    "inspect_info": ["血常规"],
    "food_info": {"good_food": ["小白菜"], "avoid_food": ["螃蟹"], "recommand_recipes": ["排骨汤"]},
}


@pytest.fixture
def reading(reading):
    return partial(reading, format="zh-disease")


def pages(*objects: object) -> str:
    return "".join(json.dumps(page, ensure_ascii=False) + "\n" for page in objects)


def entity(name: str, kind: str, line: int = 1) -> list[object]:
    return [
        NameRecord(name, name, "zh", NameKind.PREFERRED, line=line),
        TypeRecord(name, kind, kind, line=line),
    ]


def related(relation: str, tail: str, kind: str) -> list[object]:
    return [*entity(tail, kind), RelationRecord("百日咳", relation, tail, line=1)]


def test_a_page_gives_all_its_facts(write, reading):
    result = reading(write("a.jsonl", pages(PAGE)))
    assert result.records == [
        *entity("百日咳", "Disease"),
        IdRecord("百日咳", "medical_0/0", IdKind.ALTERNATE, 1),
        DefinitionRecord("百日咳", "急性呼吸道传染病。 多见于小儿。", "zh", line=1),
        *related("has_complication", "肺不张", "Disease"),
        *related("belongs_to_department", "儿科", "Department"),
        *related("common_drug", "百咳静糖浆", "Drug"),
        *related("treat_way", "药物治疗", "Treatment"),
        *related("has_symptom", "干咳", "Symptom"),
        *related("need_check", "血常规", "Check"),
        *related("good_food", "小白菜", "Food"),
        *related("avoid_food", "螃蟹", "Food"),
        *related("recommend_recipe", "排骨汤", "Food"),
    ]
    assert result.log.rejected.counts == {"cut short in the source": 1}
    assert result.log.rejected.examples["cut short in the source"][0].text == "发热伴咳嗽、咯..."
    assert result.log.n_read == 1
