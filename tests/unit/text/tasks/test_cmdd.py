"""CMDD: replies of doctors among others, and symptoms among standard names."""

from __future__ import annotations

import json

import pytest

from biograft.text import TaskConfig, read_task


def turn(speaker, sentence, label="", normalized=()):
    label = label or "O" * len(sentence)
    return {
        "speaker": speaker,
        "sentence": sentence,
        "label": label,
        "normalized": list(normalized),
    }


def dialogue(number):
    """A dialogue with two replies of its own, a common one, and two words for symptoms."""
    ill = f"孩子拉肚子第{number}天了"
    return {
        "example-id": str(number),
        "dialogue-content": [
            turn("患者", ill, "OOBII" + "O" * (len(ill) - 5), ["腹泻"]),
            turn("患者", "总是吐", "OOB", ["呕吐"]),
            turn("医生", f"请问有没有去医院查过第{number}次"),
            turn("医生", "这一句不是回复，因为没有人问"),
            turn("患者", f"还没有去过呢{number}"),
            turn("医生", "建议先去医院检查一下"),
            turn("患者", "好"),
            turn("医生", f"注意休息多喝水每天{number}杯"),
            turn("患者", "发热", "BI", ["发热"]),
        ],
    }


@pytest.fixture
def read(write):
    rows = [dialogue(number) for number in range(12)] + [{"dialogue-content": [{"speaker": 1}]}]
    path = write("train.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    return lambda form: read_task(TaskConfig(path=path, format=form))


def test_the_reply_stands_among_sentences_of_other_dialogues(read):
    content = read("cmdd-replies")
    assert content.log.rejected.counts
    assert len(content.examples) == 12  # the common reply and that to "好" are not asked for
    for number, example in enumerate(content.examples):
        assert example.query == f"孩子拉肚子第{number}天了，总是吐"
        assert (example.n_relevant, example.id) == (1, str(number))
        right = next(answer.text for answer in example.candidates if answer.relevance)
        assert right == f"请问有没有去医院查过第{number}次"
        texts = [answer.text for answer in example.candidates]
        assert len(texts) == len(set(texts)) == 10
        assert f"注意休息多喝水每天{number}杯" not in texts
    places = {
        next(k for k, answer in enumerate(each.candidates) if answer.relevance)
        for each in content.examples
    }
    assert len(places) > 3
    assert read("cmdd-replies").examples == content.examples


def test_words_are_asked_for_once_unless_they_are_the_name(read):
    examples = read("cmdd-symptoms").examples
    found = [
        (each.query, next(a.text for a in each.candidates if a.relevance)) for each in examples
    ]
    assert found == [("拉肚子：孩子拉肚子第0天了", "腹泻"), ("吐：总是吐", "呕吐")]
    assert {answer.text for answer in examples[0].candidates} == {"腹泻", "呕吐", "发热"}
