"""Training: what is learnt is written, a resumed run is the same to the last bit, refusals."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import pytest
import torch
from generative_store import Query, query_in
from manifests import changed, contents
from safetensors.torch import load_file
from tiny_models import tiny_encoder_folder
from tiny_seq2seq import SMALL
from two_processes import losses, run_on_two

from biograft.errors import ConfigError, OutputError
from biograft.linking import (
    FusedSearch,
    GenerativeConfig,
    GenerativeTraining,
    LexicalIndex,
    Linker,
    NamesConfig,
    load_ranker,
)
from biograft.models import BeamConfig, NewDecoder, NewSeq2Seq
from biograft.training.linkers import Mentions, train_generative
from biograft.training.linkers.generative import measure
from biograft.training.objectives import NameGenerationConfig

SAID = {
    "too much sugar": "D1",
    "tumour of the breast": "D2",
    "blocked heart": "D4",
    "sneezing": "D6",
}
QUERIES = [
    query_in(f"{before} {mention} {after}", mention, concept)
    for before in ("she has", "known", "no sign of")
    for mention, concept in SAID.items()
    for after in ("today", "since then")
]


def config_of(**values):
    training = {key: values.pop(key) for key in [*values] if hasattr(GenerativeTraining(), key)}
    usual = {"steps": 3, "batch_size": 8, "learning_rate": 3e-3, "precision": "fp32", "clip": 1.0}
    new = NewSeq2Seq(max_length=64, dropout=0.0, **{**SMALL, "width": 32})
    plain = GenerativeConfig(new=new, training=GenerativeTraining(**{**usual, **training}))
    return replace(plain, **{"beam": BeamConfig(beams=5), **values})


@pytest.fixture(scope="module")
def learnt(named, tmp_path_factory):
    """A run that has learnt what is said."""
    mentions = Mentions(train=QUERIES, held_out=QUERIES[:4])
    run = tmp_path_factory.mktemp("learnt") / "run"
    return train_generative(named, mentions, config_of(steps=120, eval_every=60), run)


def test_what_was_learnt_is_written(named, learnt):
    linker = Linker.open(named, model=learnt.model)
    queries = [query_in(f"seen: {mention}.", mention) for mention in SAID]
    ranked = linker.rank(queries, 5)
    assert [names[0][0].concept for names in ranked] == [*SAID.values()]
    assert learnt.report["held_out"] == {"n": 4, "recall@1": 1.0, "recall@5": 1.0}
    assert learnt.report["mentions"]["used"] == len(QUERIES)
    assert learnt.report["n_names"] == load_ranker(learnt.model, named).names.trie.n_sequences


def test_the_loss_of_mentions_held_out_is_logged(learnt):
    lines = [json.loads(x) for x in (learnt.run / "metrics.jsonl").read_text().splitlines()]
    losses = [line["evaluation"]["name_generation.nll"] for line in lines if "evaluation" in line]
    assert len(losses) == 3
    assert losses[-1] < losses[0]


def test_a_run_taken_up_again_learns_the_same_to_the_last_bit(named, tmp_path):
    mentions = Mentions(train=QUERIES)
    whole = train_generative(named, mentions, config_of(), tmp_path / "whole")
    stopped = config_of(max_minutes=1e-9)
    for resume in (False, True, True):
        part = train_generative(named, mentions, stopped, tmp_path / "parts", resume=resume)
    assert part.training.finished
    weights = [load_file(r.model / "model" / "model.safetensors") for r in (whole, part)]
    assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])
    assert whole.to_json()["step"] == 3
    before = contents(part.run)
    train_generative(named, mentions, stopped, tmp_path / "parts", resume=True)
    assert changed(before, part.run) == []


def test_names_beside_mentions_are_the_same_in_a_run_taken_up_again(named, tmp_path):
    mentions = Mentions(train=QUERIES)
    whole = train_generative(
        named, mentions, config_of(names_ratio=0.4, steps=6), tmp_path / "whole"
    )
    stopped = config_of(names_ratio=0.4, steps=6, max_minutes=1e-9)
    for resume in (False, *[True] * 5):  # an epoch has five batches of 24 mentions and 16 names
        part = train_generative(named, mentions, stopped, tmp_path / "parts", resume=resume)
    assert part.training.finished
    without = train_generative(named, mentions, config_of(steps=6), tmp_path / "without")
    weights = [
        load_file(run.model / "model" / "model.safetensors") for run in (whole, part, without)
    ]
    assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])
    assert not all(torch.equal(weights[0][key], weights[2][key]) for key in weights[0])


def test_an_encoder_with_a_new_decoder_learns_to_rank_the_names_of_a_search(named, tmp_path):
    texts = [*named.table("names").column("text").to_pylist(), *(q.context for q in QUERIES)]
    folder = tiny_encoder_folder(tmp_path / "encoder", [*texts, "start end is"])
    search = FusedSearch([LexicalIndex.build(named)])
    config = config_of(
        new=None,
        model=str(folder),
        decoder=NewDecoder(layers=1, max_length=48),
        dropout=0.0,
        steps=60,
        generate=False,
        rescore=60,
    )
    mentions = Mentions(train=QUERIES, held_out=QUERIES[:4], search=search)
    result = train_generative(named, mentions, config, tmp_path / "run")
    ranker = load_ranker(result.model, named)
    assert ranker.mixing.weights == {"lexical": 1.0}
    assert measure(ranker, search, QUERIES[:4]) == result.report["held_out"]
    # what the search finds is ranked right
    assert result.report["held_out"]["recall@1"] == result.report["held_out"]["recall@5"] > 0
    with pytest.raises(ConfigError, match="generate: false ranks the names of a search"):
        train_generative(named, Mentions(train=QUERIES), config, tmp_path / "none")


def test_the_weight_beside_a_search_is_fitted(named, tmp_path):
    search = FusedSearch([LexicalIndex.build(named)])
    held = [Query((name,), frozenset({i})) for name, i in (("heart atack", "D4"), ("cold", "D7"))]
    mentions = Mentions(train=QUERIES, held_out=held, search=search)
    config = config_of(fit_weight=True, context_words=0)
    result = train_generative(named, mentions, config, tmp_path / "run")
    ranker = load_ranker(result.model, named)
    assert ranker.mixing.generation_weight == result.report["weight"]["generation_weight"]
    assert result.report["weight"]["mixed"] >= result.report["weight"]["generative"]
    assert ranker.needs_search == (ranker.mixing.generation_weight < 1)


def test_a_given_weight_keeps_how_the_search_is_weighed(named, tmp_path):
    search = FusedSearch([LexicalIndex.build(named)])
    mentions = Mentions(train=QUERIES, search=search)
    result = train_generative(
        named, mentions, config_of(generation_weight=0.5, steps=1), tmp_path / "run"
    )
    mixing = load_ranker(result.model, named).mixing
    assert (mixing.generation_weight, mixing.weights) == (0.5, {"lexical": 1.0})


def test_a_model_goes_on_from_another(named, learnt, tmp_path):
    config = config_of(model=str(learnt.model / "model"), steps=1, learning_rate=1e-9)
    result = train_generative(named, Mentions(train=QUERIES), config, tmp_path / "run")
    weights = [load_file(r.model / "model" / "model.safetensors") for r in (learnt, result)]
    assert all(torch.allclose(weights[0][k], weights[1][k], atol=1e-5) for k in weights[0])


def test_one_name_a_concept_is_learnt_and_written(named, tmp_path):
    config = config_of(names=NamesConfig(per_concept="shortest"), steps=1)
    result = train_generative(named, Mentions(train=QUERIES), config, tmp_path / "run")
    # six: cold and mi are each the shortest of two concepts
    assert result.report["n_names"] == 6


def test_nothing_is_printed(named, tmp_path, capfd):
    train_generative(named, Mentions(train=QUERIES), config_of(steps=1), tmp_path / "run")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("config", "queries", "problem"),
    [
        (GenerativeConfig(), QUERIES, "model: none named; give the folder or name"),
        (config_of(fit_weight=True), QUERIES, "fit_weight: there is no held-out mention"),
        (config_of(), [], "training mentions: of 0 given none is left"),
        (config_of(), [query_in("x", "x", "D9")], "of 1 given none is left to learn from"),
        (config_of(model="./nowhere"), QUERIES, "no such folder"),
    ],
)
def test_what_cannot_be_learnt_is_said(named, tmp_path, config, queries, problem):
    from biograft.errors import BiograftError

    with pytest.raises(BiograftError, match=problem):
        train_generative(named, Mentions(train=queries), config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_is_not_overwritten_and_not_mixed_with_other_mentions(named, tmp_path):
    train_generative(named, Mentions(train=QUERIES), config_of(steps=1), tmp_path / "run")
    with pytest.raises(OutputError, match="exists already"):
        train_generative(named, Mentions(train=QUERIES), config_of(steps=1), tmp_path / "run")
    with pytest.raises(ConfigError, match="was started with"):
        train_generative(
            named, Mentions(train=QUERIES[1:]), config_of(steps=1), tmp_path / "run", resume=True
        )


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"target": "longest"}, "target: expected one of similar, shortest, random"),
        ({"generation_weight": 1.1}, "generation_weight: expected a number from 0 to 1, found 1.1"),
        ({"context_words": -1}, "context_words: expected at least 0"),
        ({"batch": 0}, "batch: expected at least 1"),
        ({"rescore": 3, "beam": BeamConfig(renormalise=True)}, "rescore: rescored names"),
        ({"generate": False}, "generate: false ranks the first names of the search; set rescore"),
        ({"names_ratio": 1.0}, "names_ratio: expected a number from 0 to below 1, found 1.0"),
    ],
)
def test_what_may_be_chosen(values, problem):
    with pytest.raises(ConfigError, match=problem):
        GenerativeConfig(**values)
    with pytest.raises(ConfigError, match="shared: expected one of all, fewest"):
        NamesConfig(shared="none")
    with pytest.raises(ConfigError, match="per_concept: expected one of all, shortest, random"):
        NamesConfig(per_concept="one")


def test_context_is_not_left_out_unnoticed(named, tmp_path):
    alone = [Query((mention,), frozenset({concept})) for mention, concept in SAID.items()]
    for train, held_out, what in ((alone, (), "training"), (QUERIES, alone, "held-out")):
        mentions = Mentions(train=train, held_out=held_out)
        with pytest.raises(ConfigError, match=f"{what} mentions: none of the 4 has a text.*--text"):
            train_generative(named, mentions, config_of(), tmp_path / "run")
    mentions = Mentions(train=[*alone, QUERIES[0]])
    result = train_generative(named, mentions, config_of(steps=1), tmp_path / "some")
    assert result.report["mentions"]["without_text"] == 4
    ranker = load_ranker(result.model, named)
    assert Linker(named, None, ranker=ranker).uses_context
    mentions, config = Mentions(train=alone), config_of(steps=1, context_words=0)
    result = train_generative(named, mentions, config, tmp_path / "none")
    assert not load_ranker(result.model, named).uses_context


def test_a_weight_is_not_fitted_on_names_of_the_store(named, tmp_path):
    search = FusedSearch([LexicalIndex.build(named)])
    held = [Query(("coryza",), frozenset({"D6"}))] * 50
    mentions = Mentions(train=QUERIES, held_out=held, search=search)
    config = config_of(fit_weight=True, steps=1, context_words=0)
    with pytest.raises(ConfigError, match="50 of 50 are names of their concepts in this store"):
        train_generative(named, mentions, config, tmp_path / "run")
    assert not (tmp_path / "run").exists()  # refused before the training


def test_other_names_of_the_trie_are_made_unlikely(named, tmp_path):
    config = config_of(objective=NameGenerationConfig(unlikelihood=0.1), batch_size=4)
    run = train_generative(named, Mentions(train=QUERIES), config, tmp_path / "run").run
    lines = [json.loads(x) for x in (run / "metrics.jsonl").read_text().splitlines()]
    assert all(line["name_generation.unlikelihood.loss"] > 0 for line in lines if "loss" in line)


TWO_PROCESSES = """
import pickle, sys
from pathlib import Path
from biograft.kb import KnowledgeBase
from biograft.training.linkers import Mentions, train_generative

given, kb, out = sys.argv[1:]
queries, config = pickle.loads(Path(given).read_bytes())
train_generative(KnowledgeBase.open(kb), Mentions(train=queries), config, out)
"""


@pytest.mark.long
def test_two_processes_are_as_one(named, tmp_path):
    config = config_of(steps=6)
    train_generative(named, Mentions(train=QUERIES), config, tmp_path / "one")
    (tmp_path / "given").write_bytes(pickle.dumps((QUERIES, config)))
    given = [tmp_path / "given", named.folder, tmp_path / "two"]
    run_on_two(TWO_PROCESSES, *given, log=tmp_path / "log")
    assert len(losses(tmp_path / "one")) == 6
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), abs=1e-5)
