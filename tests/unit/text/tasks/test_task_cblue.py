"""CBLUE's task files in their published layouts: JSON lists, also without labels."""

from __future__ import annotations

import json

import pytest

from biograft.text import ClassExample, PairExample, TaskConfig, read_task

QUESTION, OTHER = "糖尿病吃什么？", "糖尿病有什么治疗方法？"
FILES = {
    "chip-sts": (
        {"id": "1", "text1": QUESTION, "text2": OTHER, "label": "0", "category": "diabetes"},
        PairExample(QUESTION, OTHER, "0", "1"),
    ),
    "chip-ctc": (
        {"id": "s1", "label": "Disease", "text": "中重度脱水,尿常规异常者；"},
        ClassExample("中重度脱水,尿常规异常者；", ("Disease",), id="s1"),
    ),
    "kuake-qic": (
        {"id": "s1", "query": "心肌缺血如何治疗与调养呢？", "label": "治疗方案"},
        ClassExample("心肌缺血如何治疗与调养呢？", ("治疗方案",), id="s1"),
    ),
    "kuake-qtr": (
        {"id": "s1", "query": QUESTION, "title": OTHER, "label": "2"},
        PairExample(QUESTION, OTHER, "2", "s1"),
    ),
    "kuake-qqr": (
        {"id": "s1", "query1": QUESTION, "query2": OTHER, "label": "1"},
        PairExample(QUESTION, OTHER, "1", "s1"),
    ),
}


@pytest.mark.parametrize("indent", [None, 2, 4])
@pytest.mark.parametrize("name", FILES)
def test_a_list_is_recognised_and_read_also_without_labels(write, name, indent):
    row, example = FILES[name]
    empty, without = row | {"label": ""}, {k: v for k, v in row.items() if k != "label"}
    path = write("a.json", json.dumps([row, empty, without], ensure_ascii=False, indent=indent))
    found = read_task(TaskConfig(path=path))
    assert (found.format, found.log.rejected.counts) == (name, {})
    labelled, *others = found.examples
    assert labelled == example
    assert len(others) == 2
    assert others[0] == others[1]
    assert not (others[0].labels if isinstance(example, ClassExample) else others[0].label)


def test_elements_without_a_text_are_rejected_with_their_line(write):
    rows = [FILES["kuake-qic"][0], {"id": "s2", "label": "治疗方案"}, "no object"]
    found = read_task(TaskConfig(path=write("a.json", json.dumps(rows, indent=1))))
    assert len(found.examples) == 1
    lines = {k: e[0].line for k, e in found.log.rejected.examples.items()}
    assert lines == {"the key 'query' is missing": 7, "not a JSON object": 11}


def test_a_list_with_named_columns_is_read_as_json_lines_are(write):
    rows = [{"q1": "a", "q2": "b", "same": 1}, {"q1": "c", "q2": "d", "same": 0}]
    columns = {"first": "q1", "second": "q2", "label": "same"}
    in_lines = write("a.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    in_list = write("a.json", json.dumps(rows, indent=2))
    one, two = (read_task(TaskConfig(path=p, columns=columns)) for p in (in_lines, in_list))
    assert one.examples == two.examples == (PairExample("a", "b", "1"), PairExample("c", "d", "0"))
