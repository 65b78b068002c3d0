"""Samples before a bulk approval: what is left out of it, exact bounds, and what they cover."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

pytest.importorskip("sqlalchemy", reason="the extra `review` is not installed")

from biograft.errors import ConfigError, ConflictError
from biograft.mapping import (
    ReviewFilter,
    ReviewStore,
    ReviewTerm,
    SuggestedConcept,
    draw_sample,
    export_review,
    import_review,
    read_decisions,
)
from biograft.mapping.review_sample import max_wrong

RIGHT = SuggestedConcept("D1", "Right", 0.95)
RISKY = (
    ReviewTerm("MS", flag="exact", candidates=(RIGHT,)),
    ReviewTerm("C.O.P.D.", candidates=(RIGHT,)),
    ReviewTerm("cold", flag="ambiguous", candidates=(RIGHT,)),
    ReviewTerm("type 3", reason="Right: 3, not 2", candidates=(RIGHT,)),
    ReviewTerm("zzq", flag="nil", candidates=(RIGHT,)),
)


@pytest.fixture
def store(tmp_path):
    with ReviewStore.open(tmp_path / "review.db", create=True) as opened:
        yield opened


def plain(n: int, wrong: int = 0) -> list[ReviewTerm]:
    """Return terms of which some are wrong, told by their code only."""
    codes = ["wrong"] * wrong + [""] * (n - wrong)
    return [ReviewTerm(f"term {i}", code, candidates=(RIGHT,)) for i, code in enumerate(codes)]


def check(store: ReviewStore, sample, reviewer: str = "ann") -> None:
    for item in sample.to_check:
        action = "reject" if item.term.code == "wrong" else "approve"
        store.decide(item.id, action, reviewer=reviewer)


def test_doubtful_terms_are_left_and_translated_names_come_first(store):
    chinese = ReviewTerm("高血压", candidates=(RIGHT,))
    flagged = ReviewTerm("hypertonie", flag="translated", candidates=(RIGHT,))
    store.add_terms([*RISKY, *plain(3), chinese, flagged], reviewer="ann")
    sample = draw_sample(store, reviewer="ann")
    assert sample.left == {"acronym": 2, "flag": 1, "reason": 1, "none": 1}
    assert {item.term.text for item in sample.to_check[:2]} == {"高血压", "hypertonie"}
    assert (sample.n_terms, sample.n_sample, sample.interval) == (5, 5, None)
    done = store.decide_many("approve", reviewer="ann", expected=5, leave_risky=True)
    assert done.n_changed == 5
    assert {i.term.text for i in store.items(where=ReviewFilter(status="open"))} == {
        term.text for term in RISKY
    }
    assert store.undo_batch(done.batch, reviewer="ann").n_changed == 5


def test_the_estimate_is_there_when_the_sample_is_checked(store):
    store.add_terms(plain(400, wrong=8), reviewer="ann")
    store.add_terms([replace(t, candidates=()) for t in plain(1)], reviewer="ann", queue="x")
    first = draw_sample(store, reviewer="ann")
    assert (first.n_terms, first.n_sample, first.n_checked) == (400, 60, 0)
    again = draw_sample(store, reviewer="ann", where=ReviewFilter(min_score=0.9))
    assert [i.id for i in again.to_check] == [i.id for i in first.to_check]
    check(store, first)
    sample = draw_sample(store, reviewer="ann")
    assert (sample.n_terms, sample.n_checked, sample.to_check) == (340, 60, ())
    low, high = sample.interval
    assert low <= (8 - sample.n_wrong) / 340 <= high
    assert f"at most {100 * high:.1f} % wrong" in str(sample)
    assert draw_sample(store, queue="x", reviewer="ann").n_terms == 0


@pytest.mark.parametrize("n_wrong", [0, 12, 60])
def test_the_interval_holds_in_19_of_20_reviews(n_wrong):
    """On samples drawn anew: the bounds of the hypergeometric distribution, both sides."""
    rng = random.Random(5)
    population, n, misses = [True] * n_wrong + [False] * (300 - n_wrong), 40, 0
    for _ in range(400):
        k = sum(rng.sample(population, n))
        high = max_wrong(300, n, k, 0.025)
        low = 300 - max_wrong(300, n, n - k, 0.025)
        misses += not low <= n_wrong <= high
    assert misses <= 0.05 * 400


def test_the_bound_is_that_of_scipy_and_of_known_cases():
    stats = pytest.importorskip("scipy.stats")
    for n_items, n, k in ((100, 20, 0), (500, 60, 2), (80, 79, 3), (60, 60, 1)):
        bound = max_wrong(n_items, n, k, 0.025)
        assert stats.hypergeom.cdf(k, n_items, bound, n) > 0.025
        if bound < n_items - n + k:
            assert stats.hypergeom.cdf(k, n_items, bound + 1, n) <= 0.025
    assert max_wrong(60, 60, 1, 0.025) == 1
    large = max_wrong(100_000, 60, 0, 0.025) / 100_000
    assert large == pytest.approx(stats.beta.ppf(0.975, 1, 60), abs=1e-3)  # Clopper and Pearson


def test_wrong_terms_known_beside_the_sample_are_taken_off(store):
    store.add_terms(plain(200, wrong=10), reviewer="ann")
    check(store, draw_sample(store, reviewer="ann"))
    before = draw_sample(store, reviewer="ann")
    for item in store.items(where=ReviewFilter(status="open")):
        if item.term.code == "wrong":
            store.decide(item.id, "nil", reviewer="bob")
    after = draw_sample(store, reviewer="ann")
    assert after.n_terms < before.n_terms
    assert after.interval[1] <= before.interval[1]
    assert after.interval[0] == 0


def test_a_blind_reviewer_checks_a_sample_alone(store):
    store.add_terms(plain(30), reviewer="eve", approvals=2)
    store.set_approvals("review", 2, blind=True)
    check(store, draw_sample(store, reviewer="ann", size=10))
    assert draw_sample(store, reviewer="ann", size=10).n_checked == 10
    bob = draw_sample(store, reviewer="bob", size=10)
    assert (bob.n_terms, bob.n_checked, len(bob.to_check)) == (30, 0, 10)


def test_a_term_has_several_targets_that_come_back_and_are_undone_at_once(store, tmp_path):
    (term,) = plain(1)
    store.add_terms([term], reviewer="ann")
    first = store.items()[0]
    store.decide(first.id, "approve", reviewer="ann", relation="broad")
    with pytest.raises(ConfigError, match="already"):
        store.add_target(first.id, "D1", reviewer="ann")
    given = {"name": "Other", "relation": "narrow", "batch": "0123456789abcdef"}
    added = store.add_target(first.id, "D2", reviewer="bob", **given)
    assert store.add_target(first.id, "D2", reviewer="bob", **given) == added  # sent again
    assert added.state.opinion == ("approve", "D2", "narrow")
    assert [other.id for other in store.others(first)] == [added.id]
    assert [other.id for other in store.others(added)] == [first.id]
    export_review(store, tmp_path / "d.sssom.tsv")
    decisions = read_decisions(tmp_path / "d.sssom.tsv")
    assert [(d.concept, d.relation, d.part) for d in decisions] == [
        ("D1", "broad", ""),
        ("D2", "narrow", "Other"),
    ]
    assert import_review(store, tmp_path / "d.sssom.tsv", reviewer="cleo").n_unchanged == 2
    assert len(store.items()) == 2
    assert store.undo_batch("0123456789abcdef", reviewer="bob").n_changed == 2
    assert [item.id for item in store.items()] == [first.id]


def test_a_blind_term_gets_no_target_before_it_is_decided(store):
    store.add_terms(plain(1), reviewer="ann", approvals=2)
    store.set_approvals("review", 2, blind=True)
    (term,) = (item.id for item in store.items())
    with pytest.raises(ConfigError, match="blind"):
        store.add_target(term, "D2", reviewer="ann")
    store.set_approvals("review", 2)
    assert store.add_target(term, "D2", reviewer="ann").state.status == "proposed"
    with pytest.raises(ConflictError):
        store.add_target(term, "D2", reviewer="ann")
