"""Sentences from JSON lines, documents and annotated shards."""

import json

import pytest

from biograft.artifacts import describe_files
from biograft.errors import BiograftError, ConfigError, FormatError, InputError
from biograft.kb.sources.log import ReadLog
from biograft.text.shards import SHARDS, AnnotatedDocument, LinkedSpan, shard_path, write_shard
from biograft_lab.probing.attention import find_entity, read_sentences


def lines(*values):
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)


def test_json_lines(write):
    path = write(
        "s.jsonl",
        lines(
            {"text": "He has fever.", "entity": "fever", "synonym": "heat", "random": "gout"},
            {"text": "痛头痛", "start": 2, "end": 3, "id": "x", "concept": "D2", "language": "zho"},
            {"text": "痛头痛", "entity": "痛", "start": 0},
        ),
    )
    first, second, third = read_sentences(path)
    assert (first.entity, first.synonym, first.random) == ("fever", "heat", "gout")
    assert (first.id, first.concepts, first.language) == ("s.jsonl:1", (), "")
    assert (second.start, second.end, second.id) == (2, 3, "x")
    assert (second.concepts, second.language) == (("D2",), "zh")
    assert (third.start, third.end) == (0, 1)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"text": "a"', "is not JSON"),
        ("[1]", "expected an object"),
        ('{"text": 1, "entity": "a"}', "text is missing or no text"),
        ('{"text": "a b", "entity": "c"}', "'c' does not stand in the text"),
        ('{"text": "a b", "entity": ""}', "expected a text, found none"),
        ('{"text": "a a", "entity": "a"}', "stands at characters 0, 2; say which is meant"),
        ('{"text": "a a", "entity": "a", "start": 1}', "does not stand at character 1"),
        ('{"text": "a b", "start": 2, "end": 9}', "expected an entity of the text"),
        ('{"text": "a b", "start": 1, "end": 2}', "expected an entity of the text"),
        ('{"text": "a b"}', "expected an entity of the text"),
    ],
)
def test_a_wrong_line_is_named(write, line, problem):
    path = write("s.jsonl", lines({"text": "a", "entity": "a"}) + line + "\n")
    with pytest.raises(FormatError, match=problem) as caught:
        read_sentences(path)
    assert str(caught.value).startswith(f"{path}:2: ")
    assert "\n" not in str(caught.value)


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


def test_shards(tmp_path):
    documents = [
        AnnotatedDocument("a", "无皮疹。患者发热。", (LinkedSpan(6, 8, "D1", 1.0),), "zh"),
        AnnotatedDocument("b", "nothing"),
    ]
    write_shard(shard_path(tmp_path, 0), documents, {})
    files = describe_files(tmp_path)
    SHARDS.write(tmp_path, {"n_shards": 1, "n_documents": 2, "files": files})
    [sentences] = read_sentences(tmp_path)
    assert (sentences.text, sentences.entity, sentences.concepts) == ("患者发热。", "发热", ("D1",))
    assert (sentences.id, sentences.language) == ("a", "zh")


def test_sampling_is_uniform_and_keeps_the_order(write):
    path = write("s.jsonl", lines(*({"text": f"a{n}", "start": 0, "end": 1} for n in range(10))))
    everything = [sentence.text for sentence in read_sentences(path)]
    assert everything == [f"a{n}" for n in range(10)]
    counts = dict.fromkeys(everything, 0)
    for seed in range(300):
        sampled = [sentence.text for sentence in read_sentences(path, limit=3, seed=seed)]
        assert sampled == sorted(set(sampled))
        assert len(sampled) == 3
        for text in sampled:
            counts[text] += 1
    assert min(counts.values()) > 60  # 90 expected of each
    assert max(counts.values()) < 120
    assert len(read_sentences(path, limit=11)) == 10


def test_files_without_sentences_are_refused(write, tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        read_sentences(tmp_path / "none")
    with pytest.raises(InputError, match="holds no mention"):
        read_sentences(write("d.jsonl", lines({"id": "1", "text": "fever"})))
    with pytest.raises(BiograftError, match="no reader of documents knows"):
        read_sentences(write("prose.bin", "prose"))
    with pytest.raises(BiograftError):
        read_sentences(write("empty.jsonl", ""))


def test_find_entity():
    assert find_entity("高血压 高血压", "高血压", 4) == (4, 7)
    with pytest.raises(ConfigError, match="does not stand in the text"):
        find_entity("Fever", "fever")
