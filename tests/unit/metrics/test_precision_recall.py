"""Spans with concepts, by mention and by document."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, strategies as st

from biograft.metrics import (
    ConceptSpan,
    Counts,
    entity_report,
    label_report,
    mention_counts,
)
from biograft.text.formats.conll import decode


def span(document: str, start: int, end: int, concepts: str = "") -> ConceptSpan:
    return ConceptSpan(document, start, end, frozenset(concepts))


GOLD = [span("d", 0, 5, "A"), span("d", 8, 9, "B"), span("e", 0, 5, "A")]


def test_by_mention_span_and_concepts_must_agree():
    given_spans = [span("d", 0, 5, "A"), span("d", 8, 9, "A"), span("f", 0, 5, "A")]
    assert mention_counts(GOLD, given_spans) == Counts(1, 2, 2)


def test_a_gold_mention_is_found_once():
    assert mention_counts(GOLD, [GOLD[0], GOLD[0]]) == Counts(1, 1, 2)
    assert mention_counts(GOLD[:1], [GOLD[0], span("d", 1, 5, "A")], overlap=True) == Counts(1, 1)


def test_overlap_needs_a_common_character_and_the_concept():
    assert mention_counts(GOLD, [span("d", 4, 7, "A")], overlap=True) == Counts(1, 0, 2)
    assert mention_counts(GOLD, [span("d", 5, 7, "A")], overlap=True) == Counts(0, 1, 3)
    assert mention_counts(GOLD, [span("d", 4, 7, "B")], overlap=True) == Counts(0, 1, 3)


SPANS = st.lists(
    st.builds(
        span,
        st.sampled_from("de"),
        st.integers(0, 3),
        st.integers(4, 6),
        st.sampled_from(["A", "B", "AB", ""]),
    ),
    max_size=6,
)


@given(SPANS, SPANS, st.randoms())
def test_counts_agree_with_plain_loops_and_ignore_order(gold, answers, random):
    left, right = list(gold), 0
    for answer in answers:
        if answer in left:
            left.remove(answer)
            right += 1
    expected = Counts(right, len(answers) - right, len(gold) - right)
    random.shuffle(answers)
    assert mention_counts(gold, answers) == expected
    assert mention_counts(gold, answers, overlap=True).right >= right
    assert mention_counts(gold, gold, overlap=True) == Counts(len(gold), 0, 0)


def test_entities_are_right_by_span_and_type():
    gold = [(0, 1, 3, "X"), (0, 5, 6, "Y"), (1, 1, 3, "X")]
    answers = [(0, 1, 3, "X"), (0, 5, 6, "X"), (0, 5, 6, "X"), (1, 1, 4, "X")]
    report = entity_report(gold, answers)
    assert report.classes == {"X": Counts(1, 2, 1), "Y": Counts(0, 0, 1)}
    assert report.micro == Counts(1, 2, 2)
    assert report.macro_f1 == pytest.approx((0.4 + 0) / 2)
    none = {"precision": 0, "recall": 0, "f1": 0, "right": 0, "wrong": 0, "missed": 1}
    content = report.to_json()
    assert (content["macro_f1"], content["classes"]["Y"]) == (report.macro_f1, none)


def test_entities_of_tags_equal_a_plain_loop():
    """The loop reads tags as seqeval does: I- after O or after another type begins an entity."""
    rng, tags = random.Random(0), ["O", "B-X", "I-X", "B-Y", "I-Y"]
    for _ in range(200):
        gold, given = ([rng.choice(tags) for _ in range(12)] for _ in range(2))
        right, n_gold, n_given = 0, len(plain(gold)), len(plain(given))
        for entity in plain(given):
            right += entity in plain(gold)
        report = entity_report(*([(0, *e) for e in decode(seen)] for seen in (gold, given)))
        assert report.micro == Counts(right, n_given - right, n_gold - right)


def plain(tags):
    result, start, kind = [], None, None
    for index, tag in enumerate([*tags, "O"]):
        begins = tag[0] == "B" or (tag[0] == "I" and (start is None or tag[2:] != kind))
        if start is not None and (begins or tag == "O"):
            result.append((start, index, kind))
            start = None
        if begins:
            start, kind = index, tag[2:]
    return result


def test_labels_equal_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    rng, labels = random.Random(1), ["no", "a", "b", "c"]
    gold, answers = ([rng.choice(labels) for _ in range(300)] for _ in range(2))
    report = label_report(gold, answers, ["a", "b", "c", "known but not here"])
    expected = [
        metrics.f1_score(gold, answers, labels=["a", "b", "c"], average=way)
        for way in ("micro", "macro")
    ]
    assert [report.micro.f1, report.macro_f1] == pytest.approx(expected)
    assert report.to_json()["classes"]["a"]["right"] == sum(
        one == other == "a" for one, other in zip(gold, answers, strict=True)
    )
