"""Characters of the same sound and of similar shape, and the search of names by them."""

from __future__ import annotations

import json

import pytest

from biograft.kb import BuildConfig, KnowledgeBase, NameSuggestions, build_store, search_names
from biograft.kb.similar_characters import similar_characters, similar_spellings
from biograft.kb.sources import SourceConfig

NAMES = "心肌梗死 右室心肌梗死 末梢神经炎 阑尾炎 左肾结石 右肾结石".split()


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    folder = tmp_path_factory.mktemp("similar")
    lines = [json.dumps({"id": f"C{n}", "name": name}) for n, name in enumerate(NAMES)]
    (folder / "names.jsonl").write_text("\n".join(lines), "utf-8")
    source = SourceConfig(path=folder / "names.jsonl", language="zh")
    build_store(BuildConfig(sources=(source,)), folder / "KB")
    return KnowledgeBase.open(folder / "KB")


@pytest.mark.parametrize("pair", ["肌机", "梗埂", "末未", "己已", "胃胄", "阑兰"])
def test_characters_are_similar_both_ways(pair):
    for one, other in (pair, pair[::-1]):
        assert other in "".join(similar_characters()[one])


def test_other_spellings_differ_in_one_character():
    others = list(similar_spellings("阑尾严", [2]))
    assert "阑尾炎" in others
    assert all(len(each) == 3 and each[:2] == "阑尾" and each != "阑尾严" for each in others)
    assert list(similar_spellings("CT", [0, 1])) == []
    assert "右" not in "".join(similar_spellings("左", [0]))


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("心机梗死", "心肌梗死"),
        ("心机", "心肌梗死"),
        ("未梢神经", "末梢神经炎"),
        ("阑尾严", "阑尾炎"),
        ("兰尾炎", "阑尾炎"),
    ],
)
def test_names_are_found_by_sound_and_shape(kb, typed, first):
    full, one = NameSuggestions(kb), NameSuggestions(kb, typed)
    for matches in (full.find(typed), one.find(typed), search_names(kb, typed)):
        assert [(m.name, m.how) for m in matches][:1] == [(first, "similar")]
    assert full.find(typed) == one.find(typed)
    assert full.find(typed, language="en") == []
    assert len(full.find(typed, limit=1)) == 1


@pytest.mark.parametrize("typed", ["心肌", "右肾", "阑尾炎"])
def test_a_name_that_is_there_hides_similar_ones(kb, typed):
    assert all(match.how != "similar" for match in NameSuggestions(kb).find(typed))
    assert all(match.how != "similar" for match in search_names(kb, typed))
