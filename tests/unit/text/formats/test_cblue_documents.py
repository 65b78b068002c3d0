"""CBLUE's triples, events and dialogues as documents and classes."""

from __future__ import annotations

from pathlib import Path

import pytest
from cblue_files import DIALOGUES, EVENTS, RECORDS, event, write_records

from biograft.kb.sources.log import ReadLog
from biograft.text import TaskConfig, read_documents, read_task
from biograft.text.formats.cblue import tag_spans
from biograft.text.formats.format import sniff


def documents(path: Path, form: str = ""):
    log = ReadLog(path)
    return list(read_documents(path, form, log)), log


@pytest.mark.parametrize(
    ("task", "form"),
    [("CMeIE-V2", "cmeie"), ("CHIP-CDEE", "cdee"), ("IMCS-V2-NER", "imcs-ner")],
)
def test_files_are_recognised_and_mentions_are_at_their_offsets(tmp_path, task, form):
    path = write_records(tmp_path / "a.json", RECORDS[task])
    assert sniff(path) == form
    found, log = documents(path)
    assert not log.rejected.counts
    assert sum(len(document.mentions) for document in found) > 2
    for document in found:
        for mention in document.mentions:
            assert document.text[mention.start : mention.end] == mention.text
        ids = {mention.id for mention in document.mentions}
        assert all(name in ids for each in document.relations for _, name in each.arguments)


def related(document):
    names = {mention.id: (mention.text, mention.type) for mention in document.mentions}
    return [
        (each.type, *(names[name] for _, name in each.arguments)) for each in document.relations
    ]


def test_triples_share_their_mentions(tmp_path):
    path = write_records(tmp_path / "a.jsonl", RECORDS["CMeIE-V2"])
    (first, second), _ = documents(path)
    assert related(first) == [
        ("预防", ("麻风病", "疾病"), ("利福平", "药物")),
        ("药物治疗", ("结核", "疾病"), ("利福平", "药物")),
    ]
    assert len(first.mentions) == 3
    assert not second.relations


def test_events_are_cores_with_their_tendency(tmp_path):
    records = [
        {
            "id": "e1",
            "text": EVENTS,
            "event": [
                event("疼痛", "", ["剧烈", "轻微"], ["左侧胸部"]),
                event("咳嗽", "否定", [], []),
                event("发热", "", [], []),
            ],
        }
    ]
    (document,), log = documents(write_records(tmp_path / "a.json", records), "cdee")
    assert [m.type for m in document.mentions if m.type.startswith("core")] == [
        "core_name",
        "core_name|否定",
    ]
    assert related(document) == [
        ("character", ("疼痛", "core_name"), ("剧烈", "character")),
        ("anatomy_list", ("疼痛", "core_name"), ("左侧胸部", "anatomy_list")),
    ]
    assert log.filtered == {
        "events whose core is not in the text": 1,
        "descriptions and body parts that are not in the text": 1,
    }


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        ("O B-Drug I-Drug", [(1, 3, "Drug")]),
        ("I-Drug O", []),
        ("B-Drug I-Symptom I-Drug", [(0, 3, "Drug")]),
        ("B-Drug B-Drug O I-Drug", [(0, 1, "Drug"), (1, 2, "Drug")]),
    ],
)
def test_tags_become_entities_as_the_benchmark_has_them(tags, spans):
    assert tag_spans(tags.split()) == spans


def test_turns_without_a_tag_for_each_character_are_counted(tmp_path):
    spoken = [{"sentence_id": "1", "speaker": "医生", "sentence": "发热", "BIO_label": "O"}]
    path = write_records(
        tmp_path / "a.json", {"1": {"self-report": "", "dialogue": spoken}, "2": 3}
    )
    found, log = documents(path, "imcs-ner")
    assert [document.id for document in found] == ["1/1"]
    assert log.filtered == {"turns with more or fewer tags than characters": 1}
    assert log.rejected.counts == {"not a JSON object": 1}


def task(tmp_path: Path, records, form: str):
    return read_task(TaskConfig(path=write_records(tmp_path / "a.json", records), format=form))


def test_findings_are_marked_in_their_turn(tmp_path):
    found = task(tmp_path, RECORDS["CHIP-MDCFNPC"], "mdcfnpc").examples
    assert [(each.id, each.labels) for each in found[:2]] == [
        ("7/0/1", ("阳性",)),
        ("7/1/1", ("阴性",)),
    ]
    assert found[1].text == "医生：有【咳嗽】吗；患者：没有"
    assert found[1].context == "undefined；我发热两天"


def test_turns_have_the_turn_before_as_context(tmp_path):
    acts = task(tmp_path, DIALOGUES, "imcs-dac").examples
    assert (acts[1].text, acts[1].context) == ("患者：没有", "医生：有咳嗽吗")
    assert acts[1].labels == ("Inform-Symptom",)
    symptoms = task(tmp_path, DIALOGUES, "imcs-sr").examples
    assert [each.labels for each in symptoms[:3]] == [("咳嗽|0",), (), ("发热|1",)]
    sections = task(tmp_path, DIALOGUES, "imcs-mrg").examples
    assert sections[0].id == "10000001/self-report"
    assert "主诉" in sections[0].labels
    assert "诊断" in sections[4].labels


@pytest.mark.parametrize(
    ("form", "more"),
    [("imcs-mrg", {"report": ["x"]}), ("imcs-mrg", {"report": [{"主诉": 3}]})],
)
def test_wrong_answers_are_rejected(tmp_path, form, more):
    wrong = {**DIALOGUES["10000001"], **more}
    found = task(tmp_path, {**DIALOGUES, "wrong": wrong}, form)
    assert len(found.examples) == 10
    assert found.log.rejected.counts.total() == 1


@pytest.mark.parametrize(
    "dialogue", [{"dialogue": "x"}, {"dialogue": [{"sentence": "a"}]}, {"dialogue": ["x"]}, {}]
)
def test_wrong_dialogues_are_rejected(tmp_path, dialogue):
    found = task(tmp_path, {**DIALOGUES, "wrong": dialogue}, "imcs-dac")
    assert len(found.examples) == 8
    assert found.log.rejected.counts.total() == 1


def test_wrong_findings_are_rejected(tmp_path):
    good = RECORDS["CHIP-MDCFNPC"]
    said = {"sender": "医生", "text": "咳", "ner": [{"range": 3}]}
    wrong = [{"dialog_info": 3}, {"dialog_info": [said]}, {"dialog_info": ["x"]}]
    found = task(tmp_path, [*good, *wrong], "mdcfnpc")
    assert len(found.examples) == 4
    assert found.log.rejected.counts.total() == 3
