"""Spans with concepts, by mention and by document."""

from __future__ import annotations

from hypothesis import given, strategies as st

from biograft.metrics import Counts, Span, document_counts, mention_counts


def span(document: str, start: int, end: int, concepts: str = "") -> Span:
    return Span(document, start, end, frozenset(concepts))


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


def test_by_document_the_place_does_not_matter():
    given_spans = [span("d", 90, 99, "B"), span("d", 8, 9, "B"), span("d", 1, 2, "C")]
    assert document_counts(GOLD, given_spans) == Counts(1, 1, 2)


def test_a_document_nobody_answered_is_missed():
    assert document_counts(GOLD, []) == Counts(0, 0, 3)
    assert mention_counts(GOLD, []) == Counts(0, 0, 3)


SPANS = st.lists(
    st.builds(span, st.sampled_from("de"), st.integers(0, 3), st.integers(4, 6),
              st.sampled_from(["A", "B", "AB", ""])), max_size=6
)  # fmt: skip


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
