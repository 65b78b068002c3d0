"""Synonym substitution: labels, spans, probabilities and allowed replacements."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from annotated_texts import annotate
from generative_store import store_in

from biograft.text import AnnotatedDocument, LinkedSpan
from biograft.training.objectives import IGNORED
from biograft.training.pretraining import SubstitutionConfig, SynonymSubstitution, count_forms

SYNONYM, OTHER = 1, 0

CONCEPTS = [
    {
        "id": "D1",
        "name": "aspirin",
        "type": "drug",
        "names": {"en": ["acetylsalicylic acid"], "zh": ["阿司匹林", "乙酰水杨酸"]},
    },
    {
        "id": "D2",
        "name": "heart attack",
        "type": "disease",
        "names": {"en": ["myocardial infarction"], "zh": ["心肌梗死", "心梗"]},
    },
    {"id": "D3", "name": "diabetes", "names": ["diabetes mellitus"], "type": "disease"},
    {"id": "D4", "name": "flu", "type": "disease"},
    {"id": "D9", "name": "rare disease", "names": ["orphan disease"], "type": "disease"},
]
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
def substitution(kb):
    def make(**config):
        counts = {"D1": 5, "D2": 3, "D3": 1, "D4": 4}
        entities = pa.table({"id": list(counts), "count": list(counts.values())})
        return SynonymSubstitution(kb, SubstitutionConfig(**config), entities)

    return make


def copies(substitution, text=TEXT, n=200, names=NAMES, language="en"):
    found = annotate(text, names)
    document = AnnotatedDocument("", text, found.spans, language)
    substitution.forms = count_forms([document])
    made = (substitution.replace_entities(document, number) for number in range(n))
    return document, [copy for copy in made if copy is not None]


def test_spans_hold_the_new_names_and_the_rest_is_unchanged(substitution):
    document, made = copies(substitution(probability=1.0))
    assert len(made) > 150
    for copy in made:
        text, spans = copy.document.text, copy.document.spans
        assert copy.consistent is not None
        assert len(copy.consistent) == len(spans) == len(document.spans)
        rest, old_rest, position, old_position = [], [], 0, 0
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
            rest.append(text[position : span.start])
            old_rest.append(document.text[old_position : old.start])
            position, old_position = span.end, old.end
        assert [*rest, text[position:]] == [*old_rest, document.text[old_position:]]


def test_probabilities_and_frequencies_are_as_configured(substitution):
    _, made = copies(
        substitution(probability=1.0, synonym_probability=0.25, same_type_probability=0.0), n=2000
    )
    labels = Counter(label for copy in made for label in copy.consistent[:3])
    n_replaced = labels[SYNONYM] + labels[OTHER]
    assert labels[SYNONYM] / n_replaced == pytest.approx(0.25, abs=0.03)
    # the probability that an entity is sampled for itself: of 9 mentions 5, 3 and 1
    assert labels[IGNORED] / labels.total() == pytest.approx(1 / 3, abs=0.03)
    of_first = Counter(
        copy.document.spans[0].concept for copy in made if copy.consistent[0] == OTHER
    )
    assert set(of_first) == {"D2", "D3"}
    assert of_first["D2"] / of_first.total() == pytest.approx(3 / 4, abs=0.04)


FREQUENT = {"D1": 5 * 4, "D2": 3 * 6, "D3": 1 * 8}
"""The frequency with which each entity is inserted, as a synonym or for another one."""
UNUSED = {
    "aspirin": 2 / 5,
    "acetylsalicylic acid": 3 / 5,
    "myocardial infarction": 1,
    "diabetes mellitus": 1,
}
"""How often a name of an entity is not the one in the text below."""


@pytest.mark.parametrize("same_type", [0.0, 0.5])
def test_a_name_does_not_reveal_its_label(substitution, same_type):
    """Guards: the name that the text usually has was rarely a synonym, so it told its label."""
    drugs = ["aspirin"] * 3 + ["acetylsalicylic acid"] * 2
    text = ", ".join([*drugs, *["heart attack"] * 3, "diabetes"])
    known = NAMES | {"acetylsalicylic acid": "D1"}
    made_by = substitution(probability=1.0, same_type_probability=same_type)
    _, made = copies(made_by, text, n=4000, names=known)
    names = {SYNONYM: Counter(), OTHER: Counter()}
    for copy in made:
        for span, label in zip(copy.document.spans, copy.consistent, strict=True):
            if label != IGNORED:
                names[label][copy.document.text[span.start : span.end]] += 1
    assert set(names[SYNONYM]) == set(names[OTHER]) == set(UNUSED)
    for name in {*names[SYNONYM], *names[OTHER]}:
        ratios = [found[name] / found.total() for found in names.values()]
        assert ratios[0] == pytest.approx(ratios[1], abs=0.025)
        if not same_type:
            own = next(concept for concept, known in SYNONYMS.items() if name in known)
            assert ratios[0] == pytest.approx(FREQUENT[own] / 46 * UNUSED[name], abs=0.02)


@pytest.mark.parametrize("text", ["D5 one", "d5 ONE", "D5 four"])
def test_a_synonym_is_another_name_each_equally_often(tmp_path, text):
    """Guards: half of the synonyms of an entity with two names were the name that was there."""
    names = ["D5 two", "D5 three", "d5 One"]
    concepts = [{"id": "D5", "name": "D5 one", "names": names}, *CONCEPTS]
    entities = pa.table({"id": ["D5", "D1"], "count": [1, 3]})
    config = SubstitutionConfig(probability=1.0, synonym_probability=1.0, same_type_probability=0.0)
    made_by = SynonymSubstitution(store_in(tmp_path, concepts), config, entities)
    document = AnnotatedDocument("", text, (LinkedSpan(0, len(text), "D5", 1.0),), "")
    made_by.forms = count_forms([document])
    made = [made_by.replace_entities(document, number) for number in range(1500)]
    found = Counter(copy.document.text for copy in made if copy is not None)
    others = [
        name
        for name in ("D5 one", "D5 two", "D5 three")
        if name != text.replace("d5 ONE", "D5 one")
    ]
    assert set(found) == set(others)
    for name in others:
        assert found[name] / found.total() == pytest.approx(1 / len(others), abs=0.05)
    assert {copy.consistent for copy in made if copy is not None} == {(SYNONYM,)}


def test_the_type_can_be_kept(substitution):
    _, made = copies(
        substitution(probability=1.0, synonym_probability=0.0, same_type_probability=1.0)
    )
    made = [copy for copy in made if copy.consistent[1] == OTHER]
    assert {copy.document.spans[1].concept for copy in made} == {"D3"}
    assert all(copy.consistent[0] == IGNORED for copy in made)  # there is no other drug


def test_names_are_of_the_language_of_the_text(substitution):
    names = {"阿司匹林": "D1", "心梗": "D2"}
    _, made = copies(substitution(probability=1.0), "服阿司匹林，心梗。", 50, names, "zh")
    texts = {copy.document.text for copy in made}
    assert all(text.isascii() is False and not any(c.isascii() for c in text) for text in texts)
    assert any("乙酰水杨酸" in text for text in texts)


def test_copies_depend_on_seed_number_and_copy_alone(substitution):
    document, made = copies(substitution(), n=5)
    assert made == copies(substitution(), n=5)[1]
    assert made != copies(substitution(seed=1), n=5)[1]
    one, other = (
        substitution(probability=1.0).replace_entities(document, 0, copy) for copy in (0, 1)
    )
    assert one != other


def test_originals_are_unchanged_and_documents_without_replacement_are_not_copied(substitution):
    first = AnnotatedDocument("a", TEXT, annotate(TEXT, NAMES).spans, "en")
    second = AnnotatedDocument("b", "flu", (LinkedSpan(0, 3, "D4", 1.0),), "en")
    replaced = substitution(probability=1.0)
    read = list(replaced.read([first, second], first=5))
    assert [each.index for each in read] == [5, 6]
    assert [each.document for each in read] == [first, second]
    assert read[0].consistent == (IGNORED,) * 4
    (copied,) = replaced.read([first, second], copy=1)
    assert copied == replaced.replace_entities(first, 0, 1)


def test_others_of_the_graph_are_any_concept_and_every_mention_can_become_one(substitution):
    made_by = substitution(probability=1.0, same_type_probability=0.0, others="graph")
    _, made = copies(made_by, n=3000)
    for number, concept in enumerate(NAMES.values()):
        labels = Counter(copy.consistent[number] for copy in made)
        others = Counter(
            copy.document.spans[number].concept for copy in made if copy.consistent[number] == OTHER
        )
        assert set(others) == {each["id"] for each in CONCEPTS} - {concept}
        assert max(others.values()) < 1.4 * min(others.values())  # each as often as another
        assert (labels[SYNONYM] > 0) == (concept in SYNONYMS)
    _, kept = copies(substitution(probability=1.0, same_type_probability=1.0, others="graph"))
    drugs, diseases = ({copy.document.spans[n].concept for copy in kept} for n in (0, 1))
    assert drugs == {"D1"}
    assert diseases == {"D2", "D3", "D4", "D9"}
