"""Other words for the same: what is learned from synonyms, and what is found by it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from biograft.linking import LexicalConfig, LexicalIndex, WordSynonyms, learn_substitutions
from biograft.linking.lexical.synonyms import MIN_CONCEPTS, MIN_RATIO, MIN_SINGLE_RATIO, words_of

TUMOURS = ["liver", "skin", "bone", "lung"]
STORE = [
    *({"id": p, "name": f"{p} cancer", "names": [f"{p} neoplasm"]} for p in TUMOURS[:3]),
    {"id": "lung", "name": "lung neoplasm"},
    {"id": "R1", "name": "chronic kidney failure", "names": ["chronic renal failure"]},
    {"id": "R2", "name": "kidney cyst", "names": ["renal cyst"]},
    {"id": "R3", "name": "left renal neoplasm"},
    {"id": "R4", "name": "renal neoplasm"},
    {"id": "A1", "name": "alzheimer disease", "names": ["alzheimer"]},
    {"id": "A2", "name": "crohn disease", "names": ["crohn"]},
    {"id": "A3", "name": "graves disease"},
    {"id": "O", "name": "failure of the heart"},
]


def learned(concepts):
    """Learn from lists of forms, one list a concept."""
    rows = [(form, concept) for concept, forms in enumerate(concepts) for form in forms]
    numbers = {form: n for n, form in enumerate(dict.fromkeys(form for form, _ in rows))}
    of_row = np.array([numbers[form] for form, _ in rows], np.int64)
    return list(numbers), of_row, np.array([concept for _, concept in rows], np.int64)


def ratio_of(substitutions, word, other):
    return {o: s for s, o in substitutions.get(word, [])}.get(other)


@pytest.fixture
def store(store_of):
    return store_of(STORE)


@pytest.fixture
def index(store):
    return LexicalIndex.build(store)


def found(kb, index, text, k=8):
    hits = index.search([text], k)
    pairs = zip(hits.rows[0].tolist(), hits.scores[0].tolist(), strict=True)
    return {kb.name(row).text: score for row, score in pairs if row >= 0}


def test_a_substitution_counts_concepts_not_names():
    both = [["liver cancer", "liver neoplasm"], ["skin cancer", "skin neoplasm"]]
    alone = [["bone cancer"], ["lung cancer"], ["lung neoplasm"]]
    substitutions = learn_substitutions(*learned(both + alone))
    assert ratio_of(substitutions, "cancer", "neoplasm") == pytest.approx(2 / 4)
    assert ratio_of(substitutions, "neoplasm", "cancer") == pytest.approx(2 / 3)
    assert ratio_of(substitutions, "liver", "skin") is None


def test_what_only_one_concept_shows_is_chance():
    forms = ["liver cancer", "liver growth"]
    assert learn_substitutions(*learned([forms])) == {}
    assert MIN_CONCEPTS == 2
    assert learn_substitutions(*learned([forms, ["bone cancer", "bone growth"]]))


def test_a_word_may_be_left_out():
    substitutions = learn_substitutions(
        *learned([["alzheimer disease", "alzheimer"], ["crohn disease", "crohn"]])
    )
    assert ratio_of(substitutions, "disease", "") == 1
    assert ratio_of(substitutions, "crohn", "") is None


def test_whole_names_of_one_word_do_not_stand_for_each_other():
    assert learn_substitutions(*learned([["cancer", "neoplasm"]] * 3)) == {}


def test_names_that_were_left_out_teach_nothing():
    forms, of_row, concepts = learned([["x b", "x c"], ["d b", "d c"]])
    assert learn_substitutions(forms, of_row, concepts)
    of_row[1] = -1
    assert learn_substitutions(forms, of_row, concepts) == {}


@given(st.lists(st.lists(st.text("ab c", max_size=7), max_size=4), max_size=5))
def test_what_is_learned_is_ordered_and_within_bounds(concepts):
    substitutions = learn_substitutions(*learned(concepts))
    assert [*substitutions] == sorted(substitutions)  # not by the hashes of the process
    for word, others in substitutions.items():
        assert others == sorted(others, key=lambda e: (-e[0], e[1]))
        assert all(MIN_RATIO <= ratio <= 1 for ratio, _ in others)
        assert word not in [other for _, other in others]


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("failure of the kidney", ("failure", "kidney")),
        ("c b c", ("b", "c")),
        ("of the", ("of", "the")),
        ("", ()),
    ],
)
def test_small_words_and_order_do_not_count(form, words):
    assert words_of(form) == words


def test_other_words_find_the_name(store, index):
    names = found(store, index, "lung cancer")
    assert next(iter(names)) == "lung neoplasm"
    without = LexicalIndex.build(store, LexicalConfig(synonym_substitution=False))
    assert found(store, without, "lung cancer")["lung neoplasm"] < names["lung neoplasm"] < 0.98


def test_two_words_may_be_substituted_if_another_stays(store, index):
    assert next(iter(found(store, index, "left kidney cancer"))) == "left renal neoplasm"
    once = found(store, index, "left renal cancer")["left renal neoplasm"]
    assert 0.85 < found(store, index, "left kidney cancer")["left renal neoplasm"] <= once
    # nothing of the mention would be left
    assert found(store, index, "kidney cancer").get("renal neoplasm", 0) < 0.85


def test_the_only_word_may_be_substituted():
    made = WordSynonyms.learn(["x", "y"], np.zeros(0, np.int64), np.zeros(0, np.int64))
    made = WordSynonyms({"x": [(0.5, "y")]}, made.keys, made.forms)
    indices, forms, ratios = made.find(["x"])
    assert sorted(zip(forms.tolist(), ratios.tolist(), strict=True)) == [(0, 1.0), (1, 0.5)]
    assert indices.tolist() == [0, 0]


def test_an_only_word_is_not_replaced_by_one_that_seldom_means_the_same():
    made = WordSynonyms.learn(
        ["depression", "disease"], np.zeros(0, np.int64), np.zeros(0, np.int64)
    )
    made = WordSynonyms({"depression": [(0.05, "disease")]}, made.keys, made.forms)
    _, forms, _ = made.find(["depression"])
    assert forms.tolist() == [0]


def test_a_word_is_left_out_of_a_mention(store, index):
    assert next(iter(found(store, index, "alzheimer disease"))) == "alzheimer disease"
    assert next(iter(found(store, index, "graves"))) == "graves disease"
    assert found(store, index, "crohn disease")["crohn"] > 0.85


def test_the_order_of_words_and_small_words_do_not_matter(store, index):
    names = found(store, index, "heart failure")
    assert next(iter(names)) == "failure of the heart"
    assert names["failure of the heart"] == pytest.approx(0.975)


def test_a_mention_of_many_words_is_found_in_another_order_only():
    forms = ["x b c d e f g h i", "liver cancer", "liver neoplasm"]
    substitutions = {"x": [(0.5, "z")], "z": [(0.5, "x")]}
    made = WordSynonyms.learn(forms, np.arange(3), np.array([0, 1, 1]))
    made = WordSynonyms(substitutions, made.keys, made.forms)
    assert [x.tolist() for x in made.find(["i h g f e d c b x"])] == [[0], [0], [1.0]]
    assert [len(x) for x in made.find(["z b c d e f g h i"])] == [0, 0, 0]


def test_scores_of_chosen_names_are_those_of_a_search(store, index):
    texts = ["lung cancer", "kidney cancer", "heart failure", "graves", "chronic failure renal"]
    hits = index.search(texts, store.n_names)
    rows = np.tile(np.arange(store.n_names), (len(texts), 1))
    scores = index.score(texts, rows)
    for line in range(len(texts)):
        for row, score in zip(hits.rows[line].tolist(), hits.scores[line].tolist(), strict=True):
            if row >= 0:
                assert scores[line, row] == pytest.approx(score, abs=1e-6)


def test_what_is_saved_is_loaded(store, index, tmp_path):
    index.save(tmp_path / "L")
    opened = LexicalIndex.open(tmp_path / "L", store)
    texts = ["lung cancer", "kidney cancer", "graves", "heart failure", ""]
    for mine, theirs in zip(index.search(texts, 9), opened.search(texts, 9), strict=True):
        assert mine.tolist() == theirs.tolist()
    own, read = index._substitution, opened._substitution
    assert read.substitutions == own.substitutions
    assert [x.tolist() for x in read.find(texts)] == [x.tolist() for x in own.find(texts)]


def slowly(substitutions, forms, query):
    """Find forms by sets of words: no hashes, every chain of at most two exchanges."""
    own = frozenset(words_of(query))
    best = {own: 1.0}
    if len(own) <= 8:
        level = [(own, 1.0)]
        for n_choices in (8, 4):
            made = []
            for (bag, ratio), word in itertools.product(level, substitutions):
                for other_ratio, other in substitutions[word][:n_choices] if word in bag else ():
                    if ratio * other_ratio >= MIN_RATIO and other not in bag:
                        made.append(((bag - {word}) | ({other} - {""}), ratio * other_ratio))
            level = made
            for bag, ratio in made:
                stays = ratio >= MIN_SINGLE_RATIO if len(own) == 1 else own & bag
                if bag and stays:
                    best[bag] = max(best.get(bag, 0.0), ratio)
    found = {}
    for number, form in enumerate(forms):
        ratio = best.get(frozenset(words_of(form)))
        if ratio is not None:
            found[number] = ratio
    return found


WORDS = ["b", "c", "d", "e", "of"]
some_forms = st.lists(st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join), max_size=8)
some_substitutions = st.dictionaries(
    st.sampled_from("bcde"),
    st.lists(
        st.tuples(st.sampled_from([0.9, 0.5, 0.1, 0.05]), st.sampled_from("bcdef")),
        max_size=3,
        unique_by=lambda e: e[1],
    ),
).map(
    lambda d: {
        w: sorted((e for e in v if e[1] != w), key=lambda e: (-e[0], e[1])) for w, v in d.items()
    }
)


@given(some_forms, some_substitutions, st.booleans(), some_forms)
def test_what_is_found_is_what_sets_of_words_find(forms, substitutions, leaving_out, queries):
    forms = list(dict.fromkeys(forms))
    if leaving_out:
        substitutions = {**substitutions, "d": [(0.6, "")]}
    bags = WordSynonyms.learn(forms, np.full(0, -1), np.zeros(0, np.int64))
    substitution = WordSynonyms(substitutions, bags.keys, bags.forms)
    indices, found, ratios = substitution.find(queries)
    assert (np.diff(indices) >= 0).all()
    got = [{} for _ in queries]
    for query, form, ratio in zip(indices.tolist(), found.tolist(), ratios.tolist(), strict=True):
        got[query][form] = max(ratio, got[query].get(form, 0.0))
    for query, mine in zip(queries, got, strict=True):
        expected = slowly(substitutions, forms, query)
        if not words_of(query):
            continue  # a text without words says nothing, whatever is empty too
        assert mine.keys() == expected.keys()
        assert all(math.isclose(mine[n], expected[n], rel_tol=1e-6) for n in mine)
