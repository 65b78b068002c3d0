"""Copies with other names in them: labels, spans, shares, what may stand for what."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from annotated_texts import annotate
from generative_store import store_in

from biograft.corpus.shards import AnnotatedDocument, LinkedSpan
from biograft.errors import ConfigError
from biograft.objectives.examples import IGNORED
from biograft.pretraining.substitution import (
    OTHER,
    SYNONYM,
    SubstitutionConfig,
    SynonymSubstitution,
)

CONCEPTS = [
    {"id": "D1", "name": "aspirin", "type": "drug",
     "names": {"en": ["acetylsalicylic acid"], "zh": ["阿司匹林", "乙酰水杨酸"]}},
    {"id": "D2", "name": "heart attack", "type": "disease",
     "names": {"en": ["myocardial infarction"], "zh": ["心肌梗死", "心梗"]}},
    {"id": "D3", "name": "diabetes", "names": ["diabetes mellitus"], "type": "disease"},
    {"id": "D4", "name": "flu", "type": "disease"},
    {"id": "D9", "name": "rare disease", "names": ["orphan disease"], "type": "disease"},
]  # fmt: skip
NAMES = {"aspirin": "D1", "heart attack": "D2", "diabetes": "D3", "flu": "D4"}
TEXT = "aspirin after a heart attack, with diabetes and flu"
SYNONYMS = {
    "D1": {"aspirin", "acetylsalicylic acid"},
    "D2": {"heart attack", "myocardial infarction"},
    "D3": {"diabetes", "diabetes mellitus"},
}


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    return store_in(tmp_path_factory.mktemp("replacing"), CONCEPTS)


@pytest.fixture
def replacer(kb):
    def make(**config):
        counts = {"D1": 5, "D2": 3, "D3": 1, "D4": 4}
        entities = pa.table({"id": list(counts), "count": list(counts.values())})
        return SynonymSubstitution(kb, SubstitutionConfig(**config), entities)

    return make


def copies(replacer, text=TEXT, n=200, names=NAMES, language="en"):
    found = annotate(text, names)
    document = AnnotatedDocument("", text, found.spans, language)
    made = (replacer.replaced(document, number) for number in range(n))
    return document, [copy for copy in made if copy is not None]


def test_spans_hold_the_new_names_and_all_else_is_as_it_was(replacer):
    document, made = copies(replacer(share=1.0))
    assert len(made) > 150
    for copy in made:
        text, spans = copy.document.text, copy.document.spans
        assert copy.consistent is not None
        assert len(copy.consistent) == len(spans) == len(document.spans)
        rest, old_rest, place, old_place = [], [], 0, 0
        for span, old, label in zip(spans, document.spans, copy.consistent, strict=True):
            name = text[span.start : span.end]
            before = document.text[old.start : old.end]
            if label == IGNORED:
                assert (name, span.concept) == (before, old.concept)
            elif label == SYNONYM:
                assert span.concept == old.concept
                assert name in SYNONYMS[old.concept]
            else:
                assert span.concept != old.concept
                assert name in SYNONYMS[span.concept]
            rest.append(text[place : span.start])
            old_rest.append(document.text[old_place : old.start])
            place, old_place = span.end, old.end
        assert [*rest, text[place:]] == [*old_rest, document.text[old_place:]]


def test_shares_are_kept_and_others_occur_as_often_as_in_the_text(replacer):
    _, made = copies(replacer(share=1.0, synonyms=0.25, same_type=0.0), n=2000)
    labels = Counter(label for copy in made for label in copy.consistent[:3])
    n_replaced = labels[SYNONYM] + labels[OTHER]
    assert labels[SYNONYM] / n_replaced == pytest.approx(0.25, abs=0.03)
    # as often as an entity is drawn for itself: of 9 mentions 5, 3 and 1 times
    assert labels[IGNORED] / labels.total() == pytest.approx(1 / 3, abs=0.03)
    of_first = Counter(
        copy.document.spans[0].concept for copy in made if copy.consistent[0] == OTHER
    )
    assert set(of_first) == {"D2", "D3"}
    assert of_first["D2"] / of_first.total() == pytest.approx(3 / 4, abs=0.04)


FREQUENT = {"D1": 5 * 4, "D2": 3 * 6, "D3": 1 * 8}
"""How often each entity comes in, for itself or another: if it is there and another was drawn."""


@pytest.mark.parametrize("same_type", [0.0, 0.5])
def test_what_stands_there_does_not_tell_its_label(replacer, same_type):
    text = ", ".join(["aspirin"] * 5 + ["heart attack"] * 3 + ["diabetes"])
    _, made = copies(replacer(share=1.0, same_type=same_type), text, n=3000)
    names = {SYNONYM: Counter(), OTHER: Counter()}
    for copy in made:
        for span, label in zip(copy.document.spans, copy.consistent, strict=True):
            if label != IGNORED:
                names[label][copy.document.text[span.start : span.end]] += 1
    for name in {*names[SYNONYM], *names[OTHER]}:
        shares = [found[name] / found.total() for found in names.values()]
        assert shares[0] == pytest.approx(shares[1], abs=0.025)
        if not same_type:
            own = next(concept for concept, known in SYNONYMS.items() if name in known)
            assert shares[0] == pytest.approx(FREQUENT[own] / 46 / 2, abs=0.02)


def test_a_synonym_is_any_name_of_its_entity_its_own_too(replacer):
    _, made = copies(replacer(share=1.0, synonyms=1.0), "aspirin", n=600)
    names = Counter(copy.document.text for copy in made)
    assert set(names) == SYNONYMS["D1"]
    assert names["aspirin"] / names.total() == pytest.approx(0.5, abs=0.07)
    assert {copy.consistent for copy in made} == {(SYNONYM,)}


def test_an_entity_with_one_name_neither_goes_nor_comes(replacer):
    _, made = copies(replacer(share=1.0))
    assert all(copy.consistent[3] == IGNORED for copy in made)
    came = {span.concept for copy in made for span in copy.document.spans[:3]}
    assert came == {"D1", "D2", "D3"}  # nor one of which the text does not speak


@pytest.mark.parametrize("synonyms", [0.0, 1.0])
def test_of_the_only_one_of_its_type_nothing_is_told(replacer, synonyms):
    _, made = copies(replacer(share=1.0, synonyms=synonyms, same_type=1.0))
    assert all(copy.consistent[0] == IGNORED for copy in made)


def test_the_type_may_be_kept(replacer):
    _, made = copies(replacer(share=1.0, synonyms=0.0, same_type=1.0))
    made = [copy for copy in made if copy.consistent[1] == OTHER]
    assert {copy.document.spans[1].concept for copy in made} == {"D3"}
    assert all(copy.consistent[0] == IGNORED for copy in made)  # there is no other drug


def test_names_are_of_the_language_of_the_text(replacer):
    names = {"阿司匹林": "D1", "心梗": "D2"}
    _, made = copies(replacer(share=1.0), "服阿司匹林，心梗。", 50, names, "zh")
    texts = {copy.document.text for copy in made}
    assert all(text.isascii() is False and not any(c.isascii() for c in text) for text in texts)
    assert any("乙酰水杨酸" in text for text in texts)


def test_copies_depend_on_seed_number_and_copy_alone(replacer):
    document, made = copies(replacer(), n=5)
    assert made == copies(replacer(), n=5)[1]
    assert made != copies(replacer(seed=1), n=5)[1]
    one, other = (replacer(share=1.0).replaced(document, 0, copy) for copy in (0, 1))
    assert one != other


def test_originals_come_first_and_what_has_nothing_to_replace_is_not_copied(replacer):
    first = AnnotatedDocument("a", TEXT, annotate(TEXT, NAMES).spans, "en")
    second = AnnotatedDocument("b", "flu", (LinkedSpan(0, 3, "D4", 1.0),), "en")
    read = list(replacer(share=1.0, copies=2).read([first, second]))
    assert [each.number for each in read] == [0, 1, 0, 0]
    assert [each.document for each in read[:2]] == [first, second]
    assert read[0].consistent == (IGNORED,) * 4
    assert len(list(replacer(share=1.0, originals=False).read([first, second]))) == 1


def test_an_unknown_concept_stays(replacer):
    document = AnnotatedDocument("", "x y", (LinkedSpan(0, 1, "D77", 1.0),), "en")
    assert replacer(share=1.0).replaced(document, 0) is None


def test_shares_that_mean_nothing():
    with pytest.raises(ConfigError, match="synonyms: expected a number from 0 to 1, found 2"):
        SubstitutionConfig(synonyms=2)
    with pytest.raises(ConfigError, match="copies: expected at least 1, found 0"):
        SubstitutionConfig(copies=0)
