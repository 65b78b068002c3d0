"""Claims: what the file says, where differences come from, and the verdicts that follow."""

from __future__ import annotations

import json

import pytest

from biograft.errors import ConfigError
from biograft.metrics import EffectSize, Verdict
from biograft_lab.replication import shipped_claims, shipped_experiments
from biograft_lab.replication.claims import Claim, judge_claims, predicted
from biograft_lab.replication.differences import Arms, find_difference
from biograft_lab.replication.results import pack_flags, unpack_flags

ARMS = Arms(set="b", of="x", against="y")


def rows(values):
    """Rows of two configurations, one a seed."""
    return [
        {"set": "b", "split": "test", "config": config, "seed": n, "acc@1": value}
        for config, column in values.items()
        for n, value in enumerate(column)
    ]


def find(content, arms=ARMS):
    return find_difference(arms, content, content)


def test_claims_name_what_tests_them():
    claims = shipped_claims()
    assert len({claim.name for claim in claims}) == len(claims) >= 25
    for claim in claims:
        assert claim.claim.endswith(".")
        assert bool(claim.of) == bool(claim.experiment)
        assert claim.needs or claim.experiment in shipped_experiments()


def test_missing_results_are_not_run(tmp_path):
    assert {judged.verdict for judged in judge_claims(tmp_path)} == {Verdict.NOT_RUN}


def test_rows_without_the_answers_to_their_items_tell_nothing():
    assert find({"rows": rows({"x": [80.0, 81.0], "y": [70.0, 71.0]})}) is None


def test_an_objective_is_compared_with_chance():
    judged = {"order.accuracy": 0.6, "order.chance": 0.5, "order.error": 0.02}
    rows = [
        {"set": "test", "config": "x", "pretraining_seed": seed, "held_out": judged}
        for seed in (1, 2)
    ]
    found = find({"rows": rows}, Arms(set="test", of="x", against="chance", part="order"))
    assert (found.evidence.effect, found.n_seeds) == (pytest.approx(10), 2)
    assert found.evidence.standard_error == pytest.approx(2)


def test_answers_of_items_are_compared_item_by_item():
    content = {"rows": rows({"x": [0.0, 0.0], "y": [0.0, 0.0]})}
    for row in content["rows"]:
        flags = [True, row["config"] == "x", False, row["config"] == "x"]
        row |= {"right": pack_flags(flags), "documents": "2 2"}
    found = find(content)
    assert (found.evidence.effect, found.evidence.low, found.n_seeds) == (50, 50, 2)
    assert unpack_flags("1010").tolist() == [1, 0, 1, 0]


def test_a_part_of_the_items_is_compared_alone():
    content = {"rows": rows({"x": [0.0, 0.0], "y": [0.0, 0.0]})}
    for row in content["rows"]:
        flags = [False, row["config"] == "x", row["config"] == "y", row["config"] == "x"]
        row |= {"right": pack_flags(flags), "documents": "2 1 1", "parts": {"new": "0101"}}
    assert find(content).evidence.effect == 25
    found = find(content, Arms(set="b", of="x", against="y", part="new"))
    assert found.evidence.effect == 100
    assert found.how == "bootstrap over 2 documents and 2 seeds"


def test_an_arm_without_seeds_is_the_same_for_every_seed():
    content = {"rows": rows({"x": [0.0, 0.0], "y": [0.0]})}
    del content["rows"][2]["seed"]
    for row in content["rows"]:
        flags = [row["config"] == "x", row.get("seed") == 0]
        row |= {"right": pack_flags(flags), "documents": "1 1"}
    found = find(content)
    assert (found.evidence.effect, found.n_seeds) == (75, 2)


def claim(**more):
    texts = dict.fromkeys(("name", "claim", "figure", "metric", "experiment"), "x")
    return Claim(paper="EMBERT", **texts, **more)


def test_predictions_turn_differences():
    evidence = EffectSize(1.0, -1.0, 3.0, 0.3)
    assert predicted(claim(predicts="lower"), evidence) == EffectSize(-1.0, -3.0, 1.0, 0.3)
    narrow = EffectSize(0.1, -0.2, 0.4, 0.5)
    equal = predicted(claim(predicts="equal", margin=1.0), narrow)
    assert (equal.effect, equal.low) == (pytest.approx(0.9), pytest.approx(0.6))
    assert equal.p < 0.001
    far = predicted(claim(predicts="equal", margin=1.0), EffectSize(5.0, 4.0, 6.0, 0.0))
    assert far.effect < 0
    assert far.high == pytest.approx(-3)
    with pytest.raises(ConfigError, match="margin"):
        claim(predicts="equal")


def test_json_is_plain():
    json.dumps([judged.to_json() for judged in judge_claims()])
