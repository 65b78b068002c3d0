"""Sentences of annotated documents, one a mention."""

import json

import pytest

from biograft.errors import BiograftError, ConfigError, InputError
from biograft.kb.sources.log import ReadLog
from biograft_lab.probing.attention import find_entity, read_sentences


def lines(*values):
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)


def test_documents_give_a_sentence_a_mention(write):
    text = "No rash. He has high fever today. 无皮疹。"
    spans = [(16, 26, ["D1"]), (3, 7, []), (3, 26, ["D3"])]
    mentions = [{"start": s, "end": e, "concepts": c} for s, e, c in spans]
    mentions.append({"start": 3, "end": 7, "concepts": ["D4", "D5"]})
    mentions.append({"start": 3, "end": 26, "fragments": [[3, 7], [21, 26]], "concepts": ["D6"]})
    wrong = {"id": "2", "text": 5}
    document = {"id": "1", "text": text, "mentions": mentions, "language": "en"}
    path = write("d.jsonl", lines(document, wrong, {"id": "3", "text": "nothing"}))
    log = ReadLog(path)
    sentences = read_sentences(path, log=log)
    assert [(s.text, s.entity, s.concepts) for s in sentences] == [
        ("He has high fever today.", "high fever", ("D1",)),
        ("No rash.", "rash", ()),
        ("No rash. He has high fever today.", text[3:26], ("D3",)),
    ]
    assert {(s.id, s.language) for s in sentences} == {("1", "en")}
    assert sum(log.rejected.counts.values()) == 1


def test_a_sample_keeps_the_order(write):
    mention = [{"start": 0, "end": 1, "concepts": ["D"]}]
    rows = [{"id": str(n), "text": f"a{n}", "mentions": mention} for n in range(10)]
    path = write("s.jsonl", lines(*rows))
    everything = [sentence.text for sentence in read_sentences(path)]
    assert everything == [f"a{n}" for n in range(10)]
    samples = {tuple(s.text for s in read_sentences(path, limit=3, seed=n)) for n in range(30)}
    assert all(list(each) == sorted(each) and len(each) == 3 for each in samples)
    assert set().union(*samples) == set(everything)
    assert len(read_sentences(path, limit=11)) == 10


def test_files_without_sentences_are_refused(write, tmp_path):
    with pytest.raises(BiograftError, match="none"):
        read_sentences(tmp_path / "none")
    with pytest.raises(InputError, match="holds no mention"):
        read_sentences(write("d.jsonl", lines({"id": "1", "text": "fever"})))


def test_find_entity():
    assert find_entity("患者有高血压", "高血压") == (3, 6)
    with pytest.raises(ConfigError, match="found it 0 times"):
        find_entity("Fever", "fever")
    with pytest.raises(ConfigError, match="found it 2 times"):
        find_entity("a a", "a")
    with pytest.raises(ConfigError, match="found it 0 times"):
        find_entity("a a", "")
