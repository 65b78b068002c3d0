"""Suggestions while typing, against a plain search through all names."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from biograft.kb import KnowledgeBase, NameSuggestions
from biograft.kb.names import normalise


@pytest.fixture(scope="module")
def kb(starter: Path) -> KnowledgeBase:
    return KnowledgeBase.open(starter)


@pytest.fixture(scope="module")
def suggestions(kb: KnowledgeBase) -> NameSuggestions:
    return NameSuggestions(kb)


@pytest.fixture(scope="module")
def names(kb: KnowledgeBase) -> list[tuple[str, str]]:
    return [(name.text, concept.id) for concept in kb for name in concept.names]


@pytest.mark.parametrize(
    ("typed", "first"),
    [("heart att", "heart attack"), ("FLU", "flu"), ("attack heart", "heart attack")],
)
def test_the_name_meant_comes_first(suggestions, typed, first):
    assert suggestions.find(typed, 3)[0].name == first


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_all_concepts_with_such_a_beginning_are_found(kb, suggestions, names, data):
    name, _ = data.draw(st.sampled_from(names))
    key = normalise(name)
    words = [i for i in range(len(key)) if i == 0 or key[i - 1] == " "]
    start = data.draw(st.sampled_from(words))
    typed = key[start : data.draw(st.integers(start + 3, start + 40))].strip()
    expected = {
        concept for text, concept in names if f" {typed}" in f" {normalise(text)}" and typed
    }
    found = {match.concept for match in suggestions.find(typed, 900)} if typed else set()
    assert expected <= found


ENDS = st.sampled_from(
    ["", " of", " 2", " a's", "`", "\u2019", " +", " \u00df", "\u75c5", "\u0301", "--", "\ud800"]
)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_the_same_is_found_where_only_names_with_the_words_are_sorted(kb, suggestions, names, data):
    name, _ = data.draw(st.sampled_from(names))
    start = data.draw(st.integers(0, len(name) - 1))
    typed = name[start : data.draw(st.integers(start + 1, start + 40))] + data.draw(ENDS)
    if data.draw(st.booleans()):
        typed = " ".join(reversed(typed.upper().split()))
    limit = data.draw(st.sampled_from([1, 3, 20]))
    language = data.draw(st.sampled_from([None, "en", "zh"]))
    found = NameSuggestions(kb, typed).find(typed, limit, language=language)
    assert found == suggestions.find(typed, limit, language=language)
