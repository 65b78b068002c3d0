"""The benchmark of a pre-training step: its output, its random data, its baseline."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
import torch

from biograft.training.objectives import EdgeTable, RelationProducts
from biograft.training.objectives.smedbert import Scorer

SIZES = {
    "WIDTH": 24,
    "LONG": 64,
    "MENTIONS_OF_LONG": 6,
    "EXACTLY_SEARCHED": (500, 1000),
    "CLUSTERED_QUICK": 2000,
}


@pytest.fixture
def small(script, monkeypatch):
    """The script with a narrow model and small tables."""
    step = script("pretrain_step")
    for name, value in SIZES.items():
        monkeypatch.setattr(step, name, value)
    return step


def test_a_small_run_ends_with_one_json_object(small, monkeypatch, capsys):
    command = ["pretrain_step.py", "--quick", "--json", "--batch=2", "--length=32"]
    monkeypatch.setattr(sys, "argv", [*command, "--entities=300"])
    small.main()
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    for name in ("kebiolm", "embert", "smedbert"):
        assert result[f"{name}_over_mlm"] > 0
    assert result["smedbert"] == {"length": 64, "mentions": 6, "n_neighbours": 10, "dim": 200}
    compared = result["eq18_over_slow"]
    assert min(compared["forward"], compared["with_backward"]) > 0
    assert compared["largest_difference"] < 1e-5
    assert (compared["n_edges"], compared["n_negatives"]) == (60, 10)
    assert (compared["n_relations"], compared["dim"]) == (56, 200)
    assert set(result["nearest_over_mlm"]) == {"500", "1000"}


def test_both_forms_give_the_same_scores_and_gradients(script):
    graph = script("sampled_text").sample_graph(np.random.default_rng(0), 100)
    edges = EdgeTable.of(graph).edges(torch.arange(20))
    torch.manual_seed(0)
    table, columns = torch.randn(100, 200), torch.randint(100, (len(edges), 4))
    found = []
    for form in (
        Scorer(RelationProducts(graph), "eq16"),
        script("neighbour_scores").Projecting(graph),
    ):
        vectors = torch.ones(20, 200, requires_grad=True)
        scores = form(vectors, table, edges, columns)
        scores.sum().backward()
        found.append((scores.detach(), vectors.grad))
    for fast, slow in zip(*found, strict=True):
        torch.testing.assert_close(fast, slow, rtol=0, atol=1e-5)


def test_segment_pairs_are_split_between_mentions(script):
    sampled = script("sampled_text")
    ((example,),) = sampled.sample_batches(np.random.default_rng(0), 1, 1, 64, 300, 12)
    split = sampled.as_segment_pair(example)
    (end,) = np.flatnonzero(split.tokens[:-1] == sampled.SEP)
    assert (split.segments == (np.arange(64) > end)).all()
    first, last = split.mentions[:, 0], split.mentions[:, 1]
    assert not ((first <= end) & (last >= end)).any()
    assert not set(split.words[1:end]) & set(split.words[end + 1 : -1])
    ordinary = split.words[split.words >= 0]
    assert (np.diff(ordinary) >= 0).all()
    assert (np.delete(split.tokens, end) == np.delete(example.tokens, end)).all()
