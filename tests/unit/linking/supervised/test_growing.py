"""A store grown by mentions: what is added, and that nothing else changes."""

from __future__ import annotations

import pytest

from biograft.errors import OutputError
from biograft.linking.queries import LabelledMention
from biograft.linking.supervised import grow_store


def names_of(kb, concept):
    return [(name.text, name.source) for name in kb[concept].names]


def test_mentions_become_names_once_and_behind_the_own_ones(store_of, tmp_path):
    base = store_of([{"id": "A", "name": "renal failure", "names": ["kidney failure"]}])
    gold = frozenset({"A"})
    texts = ["failing kidneys", " failing kidneys ", "kidney failure", "Kidney failure", " "]
    grown = grow_store(base, [LabelledMention(text, gold) for text in texts], tmp_path / "G")
    source = base["A"].names[0].source
    assert names_of(grown, "A") == [
        ("renal failure", source),
        ("kidney failure", source),
        ("failing kidneys", "mentions"),
        ("Kidney failure", "mentions"),
    ]
    assert grown.name_at(0) == "renal failure"


def test_names_are_in_the_language_of_the_concept(store_of, tmp_path):
    base = store_of([{"id": "A", "names": {"zh": ["感冒"]}}])
    gold = frozenset({"A"})
    grown = grow_store(base, [LabelledMention(t, gold) for t in ("伤风", "感冒")], tmp_path / "G")
    assert [(n.text, n.language) for n in grown["A"].names] == [("感冒", "zh"), ("伤风", "zh")]


def test_all_else_stays(kb, tmp_path):
    grown = grow_store(kb, [LabelledMention("sugar illness", frozenset({"D1"}))], tmp_path / "G")
    assert [c.id for c in grown] == [c.id for c in kb]
    assert [c for c in grown if c.id != "D1"] == [c for c in kb if c.id != "D1"]
    assert grown["D1"].definitions == kb["D1"].definitions
    assert grown["D1"].names[:-1] == kb["D1"].names
    assert grown.n_names == kb.n_names + 1


def test_mentions_without_a_concept_of_the_store_add_nothing(kb, tmp_path):
    mentions = [LabelledMention("x", frozenset({"none"})), LabelledMention("y", frozenset())]
    grown = grow_store(kb, mentions, tmp_path / "G")
    assert list(grown) == list(kb)
    with pytest.raises(OutputError, match="exists already"):
        grow_store(kb, [], tmp_path / "G")
    assert grow_store(kb, [], tmp_path / "G", overwrite=True).n_names == kb.n_names
