"""Which name of the right concept is learnt, against a TF-IDF of a few lines."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from generative_store import store_in

from biograft.linking.generative import NamesConfig, select_names
from biograft.linking.generative.examples import PLAIN, TargetChooser
from biograft.linking.normalisation import Steps


def grams(text):
    padded = f" {text} "
    return Counter(padded[k : k + 3] for k in range(len(padded) - 2))


def cosines(mention, names):
    """TF-IDF of character 3-grams as text books have it; rare grams count more."""
    write = Steps.parse(PLAIN.steps)
    forms = {write(name) for name in names}
    occurs = Counter(gram for form in forms for gram in grams(form))
    rarity = {gram: math.log((1 + len(forms)) / (1 + n)) + 1 for gram, n in occurs.items()}

    def vector(text):
        return {gram: n * rarity.get(gram, 0.0) for gram, n in grams(write(text)).items()}

    def length(v):
        return math.sqrt(sum(x * x for x in v.values())) or 1.0

    asked = vector(mention)
    found = []
    for name in names:
        told = vector(name)
        dot = sum(weight * told.get(gram, 0.0) for gram, weight in asked.items())
        found.append(dot / length(asked) / length(told))
    return found


NAMES = {
    "A": ["Renal Failure", "kidney failure", "failing kidneys", "renal insufficiency, acute",
          "insufficiency of the kidney", "ARF"],
    "B": ["Hepatic Failure", "liver failure", "failure of liver function", "liver-failure"],
    "C": ["aa", "bb", "ab"],
}  # fmt: skip
MENTIONS = [
    "kidney insufficiency",
    "acute renal failing",
    "Kidney-Failure",
    "liver",
    "arf",
    "failure",
]


@pytest.fixture(scope="module")
def organs(tmp_path_factory):
    told = [{"id": i, "names": names} for i, names in NAMES.items()]
    return store_in(tmp_path_factory.mktemp("organs"), told)


@pytest.fixture(scope="module")
def choose(organs):
    def by(rule, mentions, concepts, seed=0, **names):
        selected = select_names(organs, NamesConfig(**names))
        chooser = TargetChooser(organs, selected, rule, seed)
        rows = [chooser.names_of([organs.row(i) for i in own]) for own in concepts]
        return [organs.name(row).text for row in chooser.choose(mentions, rows)]

    return by


@pytest.mark.parametrize("gold", [("A",), ("B",), ("A", "B")])
def test_the_most_similar_name_is_that_of_a_plain_tfidf(organs, choose, gold):
    every = [name for names in NAMES.values() for name in names]
    own = [name for i in gold for name in NAMES[i]]
    for mention, chosen in zip(MENTIONS, choose("similar", MENTIONS, [gold] * 6), strict=True):
        scores = dict(zip(every, cosines(mention, every), strict=True))
        best = max(scores[name] for name in own)
        assert scores[chosen] == pytest.approx(best, abs=1e-5)
        equal = [name for name in own if math.isclose(scores[name], best, abs_tol=1e-9)]
        assert chosen == min(equal, key=len) or len(equal) == 1


def test_of_equally_similar_names_the_shortest_then_the_first_is_taken(choose):
    # nothing of the mention is in any name
    assert choose("similar", ["qqq"], [("B",)]) == ["liver failure"]
    assert choose("similar", ["qqq"], [("C",)]) == ["aa"]


def test_the_shortest_name_whatever_the_mention(choose):
    assert choose("shortest", ["kidney insufficiency", "x"], [("A",), ("B",)]) == [
        "ARF",
        "liver failure",
    ]
    assert choose("shortest", ["x"], [("C",)]) == ["aa"]


def test_a_name_at_random_for_each_mention_the_same_for_the_same_seed(choose):
    many = ["x"] * 300
    drawn = choose("random", many, [("A",)] * 300, seed=4)
    assert drawn == choose("random", many, [("A",)] * 300, seed=4)
    assert drawn != choose("random", many, [("A",)] * 300, seed=5)
    counts = Counter(drawn)
    assert set(counts) == set(NAMES["A"])
    assert min(counts.values()) > 25


def test_only_names_that_may_be_generated_are_learnt(choose):
    chosen = choose("similar", MENTIONS, [("A",)] * 6, per_concept="shortest")
    assert chosen == ["ARF"] * 6


def test_names_of_concepts(organs):
    selected = select_names(organs, NamesConfig())
    chooser = TargetChooser(organs, selected, "shortest", 0)
    concepts = organs.table("names").column("concept").to_numpy()
    for own in ([0], [1], [2], [0, 2], [], [99]):
        assert chooser.names_of(own).tolist() == np.flatnonzero(np.isin(concepts, own)).tolist()
