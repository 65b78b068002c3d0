"""Blind second opinions: nothing shows the first decision before the second; then agreement."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip("sqlalchemy", reason="the extra `review` is not installed")
from review_places import postgresql

from biograft.errors import ConfigError, ConflictError
from biograft.mapping import (
    ReviewFilter,
    ReviewStore,
    ReviewTerm,
    SuggestedConcept,
    check_review,
    export_review,
    import_review,
    review_agreement,
)
from biograft.mapping.reviewer_agreement import cohen_kappa

MI, ARREST = SuggestedConcept("D1", "Myocardial Infarction", 0.8), SuggestedConcept("D2", "Arrest")
TERMS = [ReviewTerm(f"term {i}", frequency=9 - i, candidates=(MI, ARREST)) for i in range(4)]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgresql() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request, tmp_path) -> Iterator[ReviewStore]:
    is_file = request.param == "sqlite"
    place = str(tmp_path / "review.db") if is_file else request.getfixturevalue("server")
    with ReviewStore.open(place, create=True) as opened:
        yield opened


@pytest.fixture
def queue(store) -> str:
    name = uuid.uuid4().hex
    store.add_terms(TERMS, reviewer="eve", queue=name, approvals=2)
    store.set_approvals(name, 2, blind=True)
    return name


def seen(store: ReviewStore, queue: str, viewer: str) -> str:
    """Return all that a reviewer sees of a queue."""
    items = [item.to_json() for item in store.items(queue, viewer=viewer)]
    one_by_one = [store.item(item["id"], viewer).to_json() for item in items]
    events = [event.to_json() for event in store.history(queue, viewer=viewer)]
    for item in items:
        events += [e.to_json() for e in store.history(term_id=item["id"], viewer=viewer)]
    filters = [ReviewFilter(status=s) for s in ("open", "proposed")]
    filters += [ReviewFilter(reviewer="ann"), ReviewFilter(waits_for=viewer)]
    counts = [store.count(queue, where, viewer) for where in filters]
    (own,) = (each for each in store.queues(viewer) if each["queue"] == queue)
    comments = store.comments(queue, viewer)
    return json.dumps([items, one_by_one, events, counts, own, comments])


def test_the_second_reviewer_sees_the_same_whatever_the_first_decided(store, queue, tmp_path):
    ids = [item.id for item in store.items(queue)]
    before = seen(store, queue, "bob"), seen(store, queue, "")
    store.decide(ids[0], "approve", reviewer="ann", relation="broad", comment="the manual")
    store.decide(ids[1], "reject", reviewer="ann", concept="D2")
    store.decide(ids[2], "nil", reviewer="ann")
    store.undo(store.history(term_id=ids[2])[0].id, reviewer="ann")
    store.comment(ids[3], "D1 for sure", reviewer="ann")
    assert (seen(store, queue, "bob"), seen(store, queue, "")) == before
    own = store.item(ids[0], "ann")
    assert (own.state.status, own.state.concept) == ("proposed", "D1")
    assert "D1 for sure" in seen(store, queue, "ann")
    export_review(store, tmp_path / "sheet.csv", queue=queue)
    sheet = (tmp_path / "sheet.csv").read_text("utf-8")
    assert "ann" not in sheet
    assert "manual" not in sheet
    done = import_review(store, tmp_path / "sheet.csv", reviewer="bob", queue=queue)
    assert (done.n_decided, done.problems) == (0, ())


def test_the_same_opinion_decides_and_another_is_a_dispute_for_both_or_a_third(store, queue):
    one, two, three, four = (item.id for item in store.items(queue))
    for term in (one, two, three, four):
        store.decide(term, "approve", reviewer="ann", version=1, concept="D1")
    seen_version = store.item(one, "bob").version
    agreed = store.decide(one, "approve", reviewer="bob", version=seen_version, concept="D1")
    assert (agreed.state.status, agreed.state.second_reviewer) == ("approved", "bob")
    for term in (two, three, four):
        disputed = store.decide(term, "approve", reviewer="bob", version=0, concept="D2")
        assert (disputed.state.status, disputed.state.concept) == ("disputed", "D2")
        assert store.item(term, "ann").state == disputed.state
        for who, concept in (("bob", "D2"), ("ann", "D1")):
            with pytest.raises(ConflictError, match=f"{who} has proposed this"):
                store.decide(term, "approve", reviewer=who, concept=concept)
    assert store.count(queue, ReviewFilter(waits_for="ann")) == 0
    gave_in = store.decide(two, "approve", reviewer="bob", concept="D1").state
    assert (gave_in.status, gave_in.concept) == ("approved", "D1")
    assert (gave_in.reviewer, gave_in.second_reviewer) == ("ann", "bob")
    judged = store.decide(three, "nil", reviewer="cleo").state
    assert (judged.status, judged.reviewer, judged.second_reviewer) == ("nil", "cleo", None)
    changed = store.decide(four, "reject", reviewer="ann", concept="D1").state
    assert (changed.status, changed.reviewer, changed.second_reviewer) == ("disputed", "ann", "bob")
    (own,) = (each for each in store.queues("dora") if each["queue"] == queue)
    assert own["n_decided"] == 3
    assert own["statuses"] == {"approved": 2, "disputed": 1, "nil": 1}


def test_another_relation_is_another_opinion(store, queue):
    one, two = (item.id for item in store.items(queue, limit=2))
    store.decide(one, "approve", reviewer="ann", relation="broad")
    assert store.decide(one, "approve", reviewer="bob").state.status == "disputed"
    store.set_approvals(queue, 2)
    store.decide(two, "approve", reviewer="ann", relation="broad")
    assert store.decide(two, "approve", reviewer="bob").state.opinion == ("approve", "D1", "broad")


def test_a_bulk_decision_is_a_blind_opinion_too(store, queue):
    first = store.items(queue)[0].id
    store.decide(first, "approve", reviewer="ann", concept="D2")
    done = store.decide_many("approve", reviewer="bob", queue=queue, expected=4)
    assert done.n_changed == 4
    assert store.item(first).state.status == "disputed"
    assert store.undo_batch(done.batch, reviewer="bob").n_changed == 4
    assert store.item(first).state.reviewer == "ann"


def test_agreement_counts_first_opinions_and_lists_disagreements(store, queue):
    one, two, three, _ = (item.id for item in store.items(queue))
    store.decide(one, "approve", reviewer="ann")
    assert review_agreement(store, queue).to_json()["pairs"] == []
    store.decide(one, "approve", reviewer="bob")
    store.decide(two, "nil", reviewer="bob")
    store.decide(two, "approve", reviewer="ann")
    store.decide(two, "nil", reviewer="ann")  # came round: the first opinions were different
    store.decide(three, "nil", reviewer="ann")
    store.decide(three, "nil", reviewer="bob")
    found = review_agreement(store, queue).to_json()
    (pair,) = found["pairs"]
    assert (pair["first"], pair["second"], pair["n_terms"], pair["n_equal"]) == ("ann", "bob", 3, 2)
    assert pair["kappa"] == pytest.approx(0.4)
    (different,) = found["disagreements"]
    assert (different["id"], different["status"]) == (two, "nil")
    assert [(o["reviewer"], o["action"], o["concept"]) for o in different["opinions"]] == [
        ("bob", "nil", None),
        ("ann", "approve", "D1"),
    ]


def test_kappa_is_that_of_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(3)
    for n_labels in (2, 3, 9):
        one, two = rng.integers(0, n_labels, (2, 60)).tolist()
        two = [a if rng.random() < 0.6 else b for a, b in zip(one, two, strict=True)]
        expected = metrics.cohen_kappa_score(one, two)
        assert cohen_kappa(list(zip(one, two, strict=True))) == pytest.approx(expected)
    assert cohen_kappa([("a", "a")] * 3) is None
    assert cohen_kappa([("a", "b")] * 3) == 0


def test_blind_opinions_need_two_people_and_hashes_hold(tmp_path):
    place = tmp_path / "review.db"
    with ReviewStore.open(place, create=True) as store:
        store.add_terms([ReviewTerm("a", reason="4, not 3")], reviewer="ann", queue="q")
        with pytest.raises(ConfigError, match="need 2"):
            store.set_approvals("q", 1, blind=True)
        store.set_approvals("q", 2, blind=True)
        assert store.items("q")[0].term.reason == "4, not 3"
    assert check_review(place).problems == ()
