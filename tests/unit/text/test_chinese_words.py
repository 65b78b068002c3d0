"""Borders of Chinese words: names are found where words begin and end, whatever a store has."""

import gzip
import json
from importlib.resources import files

import numpy as np
import pytest

from biograft.text import NamesIndex, find_tokens
from biograft.text.chinese_words import WORDS, at_borders
from biograft.text.tokens import join_texts


def found(text, *names):
    index = NamesIndex.build(names).without((), whole_words=True)
    return [match.text for match in index.find(text)]


@pytest.mark.parametrize(
    ("text", "names", "expected"),
    [
        ("肺部器质性病变", ["性病"], []),
        ("行结肠镜检查", ["肠镜"], []),
        ("未见脑血管病变", ["脑血管病"], []),
        ("低血糖症状明显", ["低血糖症"], []),
        ("血尿素氮升高", ["血尿"], []),
        ("血尿、尿频", ["血尿", "尿频"], ["血尿", "尿频"]),
        ("器質性病變", ["性病"], []),
        ("患者头痛伴发热", ["头痛", "发热"], ["头痛", "发热"]),
        ("否认脑血管病史", ["脑血管病"], ["脑血管病"]),
        ("癫痫病人", ["癫痫"], ["癫痫"]),
        ("无尿急、尿痛", ["无尿", "尿急"], ["尿急"]),
        ("近视眼", ["近视"], ["近视"]),
        ("早产儿", ["早产"], ["早产"]),
        ("右肾结石", ["肾结石"], ["肾结石"]),
        ("性病", ["性病"], ["性病"]),
        ("CT示肺炎", ["肺炎"], ["肺炎"]),
    ],
)
def test_names_are_whole_words(text, names, expected):
    assert found(text, *names) == expected


def test_shorter_name_where_the_longer_cuts_a_word():
    assert found("抽动症状", "抽动症", "抽动") == ["抽动"]
    assert found("低血糖症状", "低血糖症", "低血糖") == ["低血糖"]


def test_a_new_name_does_not_hide_another():
    """性病 in the store once hid 病变, and made a fragment of a word a finding."""
    assert found("器质性病变", "病变") == found("器质性病变", "病变", "性病") == ["病变"]


def test_plain_indexes_find_all_names():
    assert [match.text for match in NamesIndex.build(["性病"]).find("器质性病变")] == ["性病"]


@pytest.mark.parametrize("text", ["器质 性病 变", "器质,性病,变", "a性病b"])
def test_blanks_and_other_scripts_are_borders(text):
    assert found(text, "性病") == ["性病"]


def test_other_scripts_are_left_alone():
    tokens = find_tokens(join_texts(["Lung cancer", "", "no"]))
    spans = np.arange(len(tokens.ends))
    assert at_borders(tokens, spans, spans).all()


def test_labelled_sentences(shared_data):
    """The borders cost fewer than 1 in 200 of the labelled names that a dictionary finds."""
    with gzip.open(shared_data("zh/cmeee_v2/CMeEE-V2_dev.json.gz"), "rt", encoding="utf-8") as file:
        rows = json.load(file)[:1500]
    wanted = [
        {(each["start_idx"], each["end_idx"] + 1) for each in row["entities"]} for row in rows
    ]
    names = sorted(
        {row["text"][a:b] for row, own in zip(rows, wanted, strict=True) for a, b in own}
    )
    index = NamesIndex.build(names)
    right = []
    for each in (index, index.without((), whole_words=True)):
        matches = each.find_many([row["text"] for row in rows])
        spans = [{(match.start, match.end) for match in own} for own in matches]
        right.append(sum(len(own & gold) for own, gold in zip(spans, wanted, strict=True)))
    assert right[1] > 0.995 * right[0]


def test_words_are_short():
    assert len((files("biograft.text") / WORDS).read_bytes()) < 64_000
