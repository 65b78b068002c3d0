"""CMeIE: triples of names become mentions and labels; the schema."""

from __future__ import annotations

import json

import pytest

from biograft.errors import ConfigError, FormatError
from biograft.text import TaskConfig, read_task, sniff_task
from biograft.text.documents import Mention


def triple(subject, predicate, other, kinds=("疾病", "药物"), **more):
    return {
        "Combined": False,
        "predicate": predicate,
        "subject": subject,
        "subject_type": kinds[0],
        "object": {"@value": other},
        "object_type": {"@value": kinds[1]},
        **more,
    }


TEXT = "麻风病常见。预防麻风病@用利福平，也用𠮷药。"
LINES = [
    {
        "text": TEXT,
        "spo_list": [
            triple("麻风病", "预防", "利福平"),
            triple("麻风病", "预防", "𠮷药"),
            triple("麻风", "同义词", "麻风病", ("疾病", "疾病")),
        ],
    },
    {"text": "无关", "spo_list": []},
]
SCHEMA = [{"subject_type": "疾病", "predicate": "预防", "object_type": "药物"}]


@pytest.fixture
def file(write):
    def make(values, name="cmeie.json"):
        lines = (json.dumps(value, ensure_ascii=False) for value in values)
        return write(name, "\n".join(lines) + "\n")

    return make


def reasons(log):
    return {reason: [e.line for e in log.examples[reason]] for reason in log.counts}


def test_triples_are_examples_with_the_nearest_mentions(file):
    path = file(LINES)
    assert sniff_task(path) == "cmeie"
    task = read_task(TaskConfig(path=path))
    first, second, within = task.examples
    assert (first.text, first.label, first.document, first.id) == (TEXT, "预防", "1", "1.0")
    assert first.first == Mention(8, 11, "麻风病", type="疾病")
    assert first.second == Mention(13, 16, "利福平", type="药物")
    assert (second.second, second.id) == (Mention(19, 21, "𠮷药", type="药物"), "1.1")
    assert (within.first.start, within.second.start) == (8, 0)
    for example in task.examples:
        for mention in (example.first, example.second):
            assert example.text[mention.start : mention.end] == mention.text
    assert task.log.notes == ["holds related pairs only: no example of an unrelated pair"]


def test_the_schema_gives_labels_and_refuses_other_relations(file):
    schema = file(SCHEMA, "53_schemas.json")
    task = read_task(TaskConfig(path=file(LINES), schema=schema))
    assert [example.label for example in task.examples] == ["疾病|预防|药物"] * 2
    assert reasons(task.log.rejected) == {"a relation that is not in the schema": [1]}


def test_wrong_lines_are_rejected(file):
    cut = triple("麻风病", "预防", "利福平")
    del cut["object"]
    values = [
        *LINES,
        {"text": "a"},
        {"text": TEXT, "spo_list": [cut, "x", triple("肺", "有", "药")]},
    ]
    task = read_task(TaskConfig(path=file(values), format="cmeie"))
    assert len(task.examples) == 3
    assert reasons(task.log.rejected) == {
        "not of the form text, spo_list": [3],
        "a triple without subject, predicate, object and their types": [4, 4],
        "a subject or object that is not in the text": [4],
    }


@pytest.mark.parametrize("content", [[{"predicate": "预防"}], [*SCHEMA, {}]])
def test_a_wrong_schema_is_refused(file, content):
    with pytest.raises(FormatError, match="expected one relation per line"):
        read_task(TaskConfig(path=file(LINES), schema=file(content, "schema.json")))


def test_a_schema_is_for_cmeie_alone(write, file):
    path = write("a.jsonl", '{"text": "a", "labels": ["1"]}\n')
    with pytest.raises(ConfigError, match="schema: does not apply to the task format 'jsonl'"):
        read_task(TaskConfig(path=path, schema=file(SCHEMA, "schema.json")))
