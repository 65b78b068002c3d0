"""Folds are one column, with the test of pairs; curves have the points that labels tell."""

from __future__ import annotations

import pytest

FIRST = {"all": [50.0, 60.0, 70.0], "less": [49.0, 58.0, 67.0]}


def _row(name, values, **more):
    return {
        "set": name,
        "seeds": [1],
        "epochs": 3,
        "n_examples": {"train": 1200},
        "command": "python it",
        "encoders": {label: {"test": {"values": [v], "mean": v}} for label, v in values.items()},
        "differences": [],
        **more,
    }


@pytest.fixture
def folds():
    return [
        _row(f"cmeee-{k}", {label: of[k] for label, of in FIRST.items()}, held_out={})
        for k in range(3)
    ]


def test_folds_are_one_column_with_the_test_of_pairs(script, folds):
    tables = script("pretraining_tables")
    text = tables.ablations("embert_ablations", {"rows": folds})
    assert "| cmeee, 3 folds |" in text
    assert "| all |  |  |  | 60.0 ± 10.0 |" in text
    assert "| less |  |  |  | 58.0 ± 9.0 (0.07) |" in text  # 1, 2, 3 less: t = 3.46
    assert "over folds (p against *all* over folds of the paired one, too small as" in text


def test_sets_without_folds_stay_as_they_are(script):
    tables = script("pretraining_tables")
    row = _row("cmedqq", {"all": 70.0, "less": 71.0})
    assert tables.folds_as_one([row, row]) == [row, row]
    text = tables.ablations("told_share", {"rows": [row]})
    assert text.startswith("The main figure of each set on test, in percent, one seed")


def test_how_models_were_fine_tuned_is_told_of_every_set(script):
    tables = script("pretraining_tables")
    rows = [
        _row("cmedqq", {"all": 70.0}),
        _row("ncbi", {"all": 70.0}, task_changes=["encoder.max_length=96"], command="python other"),
    ]
    text = tables.ablations("told_share", {"rows": rows})
    assert "with its commands, here of cmedqq: `python it`" in text
    assert "*cmedqq* on 1,200 examples, 3 epochs; *ncbi* on 1,200 examples, 3 epochs, `enc" in text


STEPS = {
    "embert_over_mlm": 1.04,
    "smedbert_over_mlm": 1.1,
    "smedbert": {"length": 512, "mentions": 40, "n_neighbours": 10},
}
EQUATION_18 = {
    "forward": 0.314,
    "with_backward": 0.456,
    "n_edges": 1600,
    "n_negatives": 10,
    "dim": 200,
}


def test_steps_are_told_as_far_as_they_were_measured(script):
    tell = script("pretraining_tables")._other_steps
    assert tell({}) == ""
    before = tell(STEPS)
    assert before.endswith(
        "one of SMedBERT 1.10 times (sequences of 512 tokens with\n"
        "40 mentions, 10 neighbours each).\n"
    )
    text = tell({**STEPS, "eq18_over_slow": EQUATION_18})
    assert text.startswith(before)
    told = " ".join(text.removeprefix(before).split())
    assert told == (
        "Scoring neighbours by its equation 18 takes 0.31 times as long as projecting every "
        "entity, 0.46 times with the backward pass (1,600 neighbours, each beside 10 other "
        "entities, vectors of 200 that do not learn)."
    )


def test_curves_are_in_the_order_of_their_numbers(script, tmp_path):
    figures = script("figures")
    values = {"told 1": 71.0, "told 0": 70.0, "told 0.5": 72.0}
    row = _row("ncbi", values)
    for found in row["encoders"].values():
        found["test"]["deviation"] = 0.5
    result = {"rows": [row]}
    points = figures.curves(result, "told ")
    assert points == {"ncbi": [(0, 70, 0.5), (0.5, 72, 0.5), (1, 71, 0.5)]}
    for place in ("a", "b"):
        figures.draw(result, "share", "told ", tmp_path / place / "share.svg")
    first, second = ((tmp_path / place / "share.svg").read_bytes() for place in ("a", "b"))
    assert first == second
    assert b"<svg" in first
