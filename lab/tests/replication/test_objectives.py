"""The text of the experiments on objectives, and their table."""

from __future__ import annotations

import numpy as np

from biograft_lab.replication.objectives import main
from biograft_lab.replication.tables import learned_objectives


def test_no_held_out_document_is_in_training_in_other_words(tmp_path):
    """Splits are disjoint, and a near-duplicate of a held-out document is in none of them."""
    rng, letters = np.random.default_rng(0), list("abcdefghijklmnopqrstuvwxyz")
    lines = [" ".join("".join(rng.choice(letters, 6)) for _ in range(40)) for _ in range(400)]
    lines += [f"Again: {line}" for line in lines]
    (tmp_path / "text.txt").write_text("\n".join([*lines, "short"]), encoding="utf-8")
    sizes = ["--train", "150", "--held-out", "60", "--characters", "100"]
    main([str(tmp_path / "text.txt"), "-o", str(tmp_path / "split"), *sizes])
    parts = {
        name: (tmp_path / "split" / f"{name}.txt").read_text("utf-8").splitlines()
        for name in ("train", "dev", "test")
    }
    assert len(parts["train"]) == 150
    assert len(parts["test"]) == 60
    plain = {name: {line.removeprefix("Again: ") for line in of} for name, of in parts.items()}
    assert not plain["test"] & (plain["train"] | plain["dev"])
    assert not plain["dev"] & plain["train"]


def test_the_table_says_how_far_above_chance():
    found = {"accuracy": 0.7, "chance": 0.5, "error": 0.02, "n": 1200.0}
    held_out = {f"sentence_order.{name}": value for name, value in found.items()}
    row = {"config": "SMedBERT", "pretraining_seed": 1, "held_out": held_out}
    table = learned_objectives("learnable-order", {"rows": [row]})
    last = "| SMedBERT | 1 | sentence order | 1,200 | 70.0 ± 2.0 | 50.0 | +10.0 |"
    assert table.splitlines()[-1] == last
