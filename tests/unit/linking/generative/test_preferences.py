"""Preference training of a generative linker, as in examples/angel.py."""

from __future__ import annotations

import importlib.util
import json
import math
from pathlib import Path

import pytest
import torch
from generative_store import query_in
from safetensors.torch import load_file
from test_generative_training import config_of
from tiny_causal import tiny_causal_folder
from two_processes import losses, run_on_two

from biograft.errors import ConfigError
from biograft.linking import Linker, load_ranker
from biograft.models import Seq2SeqModel
from biograft.training.linkers import Mentions, NameScores, collect_pairs, train_generative
from biograft.training.linkers.generative import measure
from biograft.training.objectives import NameExample

EXAMPLE = Path(__file__).parents[4] / "examples" / "angel.py"
SAID = {
    "too much sugar": "D1",
    "tumour of the breast": "D2",
    "blocked heart": "D4",
    "sneezing": "D6",
    "frost": "D7",
    "leaking valve": "D8",
}
QUERIES = [
    query_in(f"{before} {mention} {after}", mention, concept)
    for before in ("she has", "known", "no sign of")
    for mention, concept in SAID.items()
    for after in ("today", "since then")
]
TRAINING = {"batch_size": 8, "precision": "fp32", "learning_rate": 1e-3, "clip": 1.0}


@pytest.fixture(scope="module")
def angel():
    spec = importlib.util.spec_from_file_location("angel", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def first(named, tmp_path_factory):
    """A linker that has not learnt enough."""
    run = tmp_path_factory.mktemp("first") / "run"
    return train_generative(named, Mentions(train=QUERIES), config_of(steps=8), run).model


def metrics(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    "settings",
    [{"beta": 0.5}, {"reference": False, "beta": 2.0, "margin": 0.5}],
)
def test_the_example_is_short_and_trains_with_a_rising_dev_curve(
    settings, angel, named, first, tmp_path
):
    assert len(EXAMPLE.read_text().splitlines()) <= 60
    config = angel.Angel(**settings)
    training = {**TRAINING, "steps": 60, "eval_every": 20}
    run = tmp_path / "run"
    angel.train_angel(Linker.open(named, model=first), QUERIES, QUERIES, run, config, **training)
    lines = metrics(run)
    curve = [line["evaluation"]["recall@1"] for line in lines if "evaluation" in line]
    assert max(curve[1:]) > curve[0]
    preferred = [line["preferred"] for line in lines if "preferred" in line]
    assert sum(preferred[-10:]) > sum(preferred[:10])
    ranker = load_ranker(run / "model", named)
    assert measure(ranker, None, QUERIES)["recall@1"] == pytest.approx(curve[-1])


@pytest.mark.parametrize("reference", [True, False])
def test_the_loss_is_that_of_plain_loops(reference, angel):
    rng = torch.Generator().manual_seed(4)
    right, wrong = (-5 * torch.rand(9, 3, generator=rng) for _ in range(2))
    for side in (right, wrong):
        side[:, 1] = torch.randint(1, 7, (9,), generator=rng)
    config = angel.Angel(beta=0.7, margin=0.2, reference=reference)
    total, n_preferred = 0.0, 0
    for a, b in zip(right.tolist(), wrong.tolist(), strict=True):
        if reference:  # equation 7 of Rafailov et al. 2023, with the margin of SimPO
            lead = 0.7 * ((a[0] - a[2]) - (b[0] - b[2])) - 0.2
        else:  # equation 6 of Meng et al. 2024
            lead = 0.7 * a[0] / a[1] - 0.7 * b[0] / b[1] - 0.2
        total += math.log(1 + math.exp(-lead))
        n_preferred += lead > 0
    loss, statistics = angel.preference_loss(right, wrong, config)
    assert float(loss) == pytest.approx(total / 9, rel=1e-5)
    assert statistics["preferred"] == pytest.approx(n_preferred / 9)


@pytest.mark.parametrize("kind", ["bart", "Qwen3"])
def test_scores_are_sums_of_log_probabilities_token_by_token(kind, seq2seq, named, tmp_path):
    if kind == "Qwen3":
        texts = [*named.table("names").column("text").to_pylist(), "start end is"]
        seq2seq = Seq2SeqModel.from_pretrained(tiny_causal_folder(tmp_path / kind, texts))
    examples = [
        NameExample("start cold end today", "cold is", "common cold"),
        NameExample("start a heart attack end", "heart attack is", "mi"),
        NameExample("start cold end", "", "breast cancer"),
    ]
    sources, begun = seq2seq.inputs([e.source for e in examples], [e.prompt for e in examples])
    with torch.no_grad():
        found = NameScores(seq2seq).eval()(examples).tolist()
        for example, source, tokens, (score, n) in zip(
            examples, sources, begun, found, strict=True
        ):
            total, name = 0.0, [*seq2seq.tokens([example.target])[0], seq2seq.end]
            for token in name:
                read = {"input_ids": torch.tensor([tokens])}
                if kind == "bart":
                    read = {"decoder_input_ids": read.pop("input_ids")}
                    read["input_ids"] = torch.tensor([source])
                logits = seq2seq.model(**read).logits[0, -1]
                total += float(logits.double().log_softmax(0)[token])
                tokens.append(token)
            assert (score, n) == (pytest.approx(total, rel=1e-4), len(name))


def test_wrong_names_are_those_of_other_concepts(named, first):
    linker = Linker.open(named, model=first)
    queries = [
        query_in("a cold day", "cold", "D7"),
        query_in("MI was seen", "MI", "D4"),
        query_in("nothing", "nothing"),
    ]
    for source in ("beam", "search"):
        pairs = collect_pairs(linker, queries, 2, source)
        assert pairs
        assert max(sum(r == right for r, _ in pairs) for right, _ in pairs) <= 2
        for right, wrong in pairs:
            assert (right.source, right.prompt) == (wrong.source, wrong.prompt)
            own = {"cold temperature", "cold"} if "day" in right.source else None
            own = own or {"myocardial infarction", "heart attack", "mi"}
            assert right.target in own
            assert wrong.target not in own
    assert "nothing" not in {right.source for right, _ in pairs}
    with pytest.raises(ConfigError, match="expected a generative linker and the source beam or"):
        collect_pairs(Linker.open(named), queries, 2)


def test_a_run_taken_up_again_learns_the_same_to_the_last_bit(angel, named, first, tmp_path):
    few = {**TRAINING, "steps": 3}
    config = angel.Angel()
    angel.train_angel(
        Linker.open(named, model=first), QUERIES[:9], [], tmp_path / "whole", config, **few
    )
    for resume in (False, True, True):
        angel.train_angel(
            *(Linker.open(named, model=first), QUERIES[:9], [], tmp_path / "parts", config, resume),
            **few,
            max_minutes=1e-9,
        )
    weights = [
        load_file(tmp_path / run / "model" / "model" / "model.safetensors")
        for run in ("whole", "parts")
    ]
    assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])


TWO_PROCESSES = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[1:4]
import angel
from biograft.linking import Linker
from test_preferences import QUERIES, TRAINING

kb, first, out = sys.argv[4:]
linker = Linker.open(kb, model=first)
angel.train_angel(linker, QUERIES, [], Path(out), angel.Angel(), **TRAINING, steps=4)
"""


@pytest.mark.slow
def test_two_processes_are_as_one(angel, named, first, tmp_path):
    angel.train_angel(
        Linker.open(named, model=first),
        QUERIES,
        [],
        tmp_path / "one",
        angel.Angel(),
        **TRAINING,
        steps=4,
    )
    here, support = Path(__file__).parent, Path(query_in.__code__.co_filename).parent
    folders = (EXAMPLE.parent, here, support)
    out = tmp_path / "two"
    run_on_two(TWO_PROCESSES, *folders, named.folder, first, out, log=tmp_path / "log")
    assert losses(out) == pytest.approx(losses(tmp_path / "one"), abs=1e-5)
