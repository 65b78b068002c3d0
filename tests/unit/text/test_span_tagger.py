"""The tagger of spans: its sums against all labellings, what it learns, and what it keeps."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from biograft.text.span_tagger import LabelLattice, SpanTagger, words_of

OUTSIDE, FIRST, INSIDE, LAST, ONLY = range(5)
NAMES = ("fever", "sepsis", "gout", "a rash", "joint pain", "cold sweat")


def test_words_are_letters_numbers_characters_and_marks():
    text = "T2DM, 发热(37.5)"
    words = [text[start:end] for start, end in words_of(text)]
    assert words == ["T", "2", "DM", ",", "发", "热", "(", "37", ".", "5", ")"]


def is_allowed(labels):
    inside = False
    for label in labels:
        if inside != (label in (INSIDE, LAST)):
            return False
        inside = label in (FIRST, INSIDE)
    return not inside


def test_the_probability_of_a_span_is_that_of_all_labellings_that_have_it():
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(5, 5)).astype(np.float32)
    transitions = rng.normal(size=(5, 5)).astype(np.float32)
    ended, begun = (OUTSIDE, LAST, ONLY), (FIRST, INSIDE)
    transitions[np.ix_(ended, (INSIDE, LAST))] = -1e9
    transitions[np.ix_(begun, (OUTSIDE, FIRST, ONLY))] = -1e9
    weights = {}
    for labels in product(range(5), repeat=5):
        if is_allowed(labels):
            score = sum(scores[n, label] for n, label in enumerate(labels))
            score += sum(transitions[pair] for pair in pairwise(labels))
            weights[labels] = np.exp(score)
    total = sum(weights.values())
    lattice = LabelLattice(scores, transitions)
    likely = {(i, j): p for i, j, p in lattice.likely()}
    for i in range(5):
        for j in range(i, 5):
            own = [ONLY] if i == j else [FIRST, *[INSIDE] * (j - i - 1), LAST]
            expected = sum(w for labels, w in weights.items() if [*labels[i : j + 1]] == own)
            assert lattice.probability(i, j) == pytest.approx(expected / total, rel=1e-4)
            if expected / total > 0.04:
                assert likely[i, j] == pytest.approx(expected / total, rel=1e-4)


def corpus():
    texts, spans = [], []
    for n in range(60):
        name = NAMES[n % len(NAMES)]
        texts.append(f"Day {n}: the patient reports {name} since May; cold water was given.")
        start = texts[-1].index(name)
        spans.append({(start, start + len(name))})
    return texts, spans


def found(tagger, text, hint=None):
    (spans,) = tagger.probabilities([text], [hint or {}], [()])
    return {text[start:end]: p for (start, end), p in spans.items() if p > 0.5}


def test_mentions_are_found_by_the_words_beside_them():
    texts, spans = corpus()
    tagger = SpanTagger.fit(texts, [{}] * len(texts), spans)
    assert found(tagger, "Day 99: the patient reports lumbago since May.").keys() == {"lumbago"}
    assert found(tagger, "Day 99: cold water was given.") == {}
    (asked,) = tagger.probabilities(["Cold water."], [{}], [[(0, 4), (0, 2)]])
    assert asked[0, 4] < 0.1
    assert asked[0, 2] == asked[0, 4], "a part of a word counts as the word"
    assert tagger.probabilities([""], [{}], [()]) == [{}]


def test_hints_are_learned_too():
    texts = [f"{'xyz' if n % 2 else 'abc'} {n} word {n}" for n in range(40)]
    spans = [{(0, 3)} if n % 3 else set() for n in range(40)]
    hints = [{(0, 3): "name"} if n % 3 else {} for n in range(40)]
    tagger = SpanTagger.fit(texts, hints, spans)
    assert found(tagger, "xyz 7 word 7", {(0, 3): "name"}).keys() == {"xyz"}
    assert found(tagger, "xyz 7 word 7") == {}


def test_a_tagger_is_kept_in_small_arrays_without_words():
    texts, spans = corpus()
    tagger = SpanTagger.fit(texts, [{}] * len(texts), spans)
    arrays = tagger.arrays()
    assert {array.dtype.kind for array in arrays.values()} == {"u", "f"}
    assert sum(array.nbytes for array in arrays.values()) < 100_000
    again = SpanTagger.from_arrays(arrays)
    for text in texts[:6]:
        own, other = found(tagger, text), found(again, text)
        assert own.keys() == other.keys() != set()
        assert all(other[name] == pytest.approx(p, abs=0.05) for name, p in own.items())


def test_learning_again_gives_the_same():
    texts, spans = corpus()
    first, second = (SpanTagger.fit(texts, [{}] * len(texts), spans).arrays() for _ in range(2))
    assert all(np.array_equal(first[name], second[name]) for name in first)
