"""Claims: what the file says, where differences come from, and the verdicts that follow."""

from __future__ import annotations

import json

import pytest

from biograft.errors import ConfigError
from biograft.metrics import EffectSize, Verdict, paired_t, welch_t
from biograft_lab.replication import Experiment, shipped_claims, shipped_experiments
from biograft_lab.replication.claims import Claim, judge_claims, predicted
from biograft_lab.replication.differences import Arms, find_difference, half_width
from biograft_lab.replication.encoders import EncoderVariant
from biograft_lab.replication.results import pack_flags, unpack_flags
from biograft_lab.replication.runner import parse_variants

ARMS = Arms(set="b", of="x", against="y")


def rows(values, key="seed"):
    """Rows of two configurations, one a seed or a fold."""
    return [
        {"set": "b" if key == "seed" else f"b-{n}", "split": "test", "config": config}
        | ({"seed": n} if key == "seed" else {"seed": 0})
        | {"acc@1": value}
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


def test_every_arm_of_an_encoder_experiment_is_a_variant():
    for claim in shipped_claims():
        if claim.of and Experiment.load(claim.experiment).kind == "encoder_tasks":
            variants = parse_variants(Experiment.load(claim.experiment), EncoderVariant)
            assert {claim.of, claim.against} <= variants.keys(), claim.name


def test_missing_results_are_not_run(tmp_path):
    assert {judged.verdict for judged in judge_claims(tmp_path)} == {Verdict.NOT_RUN}


def test_seeds_are_compared_by_welch():
    found = find({"rows": rows({"x": [80.0, 81.0, 82.0], "y": [70.0, 71.0, 72.0]})})
    assert (found.evidence.effect, found.n_seeds) == (pytest.approx(10), 3)
    assert found.evidence.high - 10 == pytest.approx(2.776 * (2 / 3) ** 0.5, abs=1e-2)
    assert find({"rows": rows({"x": [71.0], "y": [70.0]})}) is None


def test_seeds_of_pretraining_are_what_counts():
    """Many seeds of fine-tuning do not narrow the interval of few of pre-training."""
    values = {"x": ([1.0, 3.0], [4.0, 6.0]), "y": ([0.0, 0.0], [1.0, 1.0])}
    content = {
        "rows": [
            {
                "set": "b",
                "pretraining_seed": seed,
                "seeds": [1, 2],
                "encoders": {arm: {"test": {"values": of[seed]}} for arm, of in values.items()},
            }
            for seed in (0, 1)
        ]
    }
    found = find(content)
    assert (found.evidence.effect, found.n_seeds) == (3, 2)
    assert found.evidence.p == pytest.approx(welch_t([2.0, 5.0], [0.0, 1.0]).p)


def test_an_objective_is_compared_with_chance():
    judged = {"order.accuracy": 0.6, "order.chance": 0.5, "order.error": 0.02}
    rows = [
        {"set": "test", "config": "x", "pretraining_seed": seed, "held_out": judged}
        for seed in (1, 2)
    ]
    found = find({"rows": rows}, Arms(set="test", of="x", against="chance", part="order"))
    assert (found.evidence.effect, found.n_seeds) == (pytest.approx(10), 2)
    assert found.evidence.standard_error == pytest.approx(2)


def test_folds_are_paired():
    found = find({"rows": rows({"x": [11.0, 12.0, 13.0], "y": [10.0, 10.0, 10.0]}, "fold")})
    half = found.evidence.high - found.evidence.effect
    assert half == pytest.approx(4.3027 / 3**0.5, abs=1e-3)  # t(2), standard error 1 / sqrt 3
    assert half == pytest.approx(half_width(paired_t, [11.0, 12, 13], [10.0, 10, 10]))


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


def test_answers_of_folds_are_not_those_of_the_last_one():
    """Rows of folds were told apart by their seed alone, so that one fold stood for all."""
    content = {"rows": rows({"x": [11.0, 12.0, 13.0], "y": [10.0, 10.0, 10.0]}, "fold")}
    for row in content["rows"]:
        row |= {"right": "10", "documents": "1 1"}
    assert find(content).how == "paired t over 3 folds"
    assert find(content).evidence.effect == pytest.approx(2)


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
