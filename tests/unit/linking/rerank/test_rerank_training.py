from __future__ import annotations

import json
import pickle
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from manifests import changed, contents
from safetensors.torch import load_file
from two_processes import losses, run_on_two, without_dropout

from biograft.errors import ConfigError, OutputError, StoreError
from biograft.linking import ContextReranker, Linker, SearchRanker, rerank as model
from biograft.training.batches import EpochOrder, OrderedBatches, Shard
from biograft.training.linkers import (
    LINKERS,
    LinkerRecipe,
    LinkerTrainingData,
    collect_examples,
    train_reranker,
)
from biograft.training.linkers.rerank import listwise_loss, sample_examples
from biograft.training.objectives import marginal_loss


@pytest.fixture(scope="module")
def data(bench):
    return collect_examples(bench.kb, bench.linker, bench.queries, bench.config(held_out=0.2))


def batches_of(examples, config, rank=0, world=1):
    size = config.training.plan_batch(world).size
    order = EpochOrder(len(examples), size, config.training.seed, Shard(rank, world))
    return OrderedBatches(order, partial(sample_examples, examples, config))


def report_of(run):
    return json.loads((run / "model" / "manifest.json").read_text())["report"]


def test_context_decides_between_concepts_of_one_name_and_nil(trained):
    report = report_of(trained)
    assert report["held_out"]["first_ranking"] < 0.6
    assert report["held_out"]["context"] >= 0.9
    assert report["held_out"]["mixed"] >= 0.9
    assert (report["n_train"], report["n_held_out"]) == (48, 12)


def test_a_run_taken_up_again_learns_the_same_to_the_last_bit(bench, data, tmp_path):
    whole = train_reranker(data, bench.config(steps=6), tmp_path / "whole")
    stopped = bench.config(steps=6, max_minutes=1e-9)
    for resume in (False, *[True] * 5):
        part = train_reranker(data, stopped, tmp_path / "parts", resume=resume)
    assert part.training.finished
    for name in ("head.safetensors", "encoder/model.safetensors"):
        tensors = [load_file(result.model / name) for result in (whole, part)]
        assert all(torch.equal(tensors[0][key], tensors[1][key]) for key in tensors[0])
    assert part.report == whole.report
    assert whole.to_json()["step"] == 6
    before = contents(part.run)
    train_reranker(data, stopped, tmp_path / "parts", resume=True)
    assert changed(before, part.run) == []


def test_an_interim_evaluation_is_logged(bench, data, tmp_path):
    train_reranker(data, bench.config(steps=2, eval_every=1), tmp_path / "run")
    lines = [json.loads(x) for x in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [line["evaluation"]["n"] for line in lines if "evaluation" in line] == [12] * 3


def test_training_reads_a_sample_of_the_candidates(bench, data):
    config = replace(bench.config(batch_size=48), n_train_candidates=3)
    (first,), (second,) = (list(batches_of(data.train, config).batches(e)) for e in (0, 1))
    whole = {example.mention[:2]: example for example in data.train}
    kept = {epoch: {} for epoch in (0, 1)}
    for epoch, batch in enumerate((first, second)):
        for example in batch:
            full = whole[example.mention[:2]]
            names = [candidate.concept for candidate in example.mention.candidates]
            everything = [candidate.concept for candidate in full.mention.candidates]
            assert [name for name in everything if name in names] == names
            flags = dict(zip(everything, full.right[:-1], strict=True))
            assert example.right == (*(flags[name] for name in names), full.right[-1])
            assert {name for name, right in flags.items() if right} <= set(names)
            assert len(names) == max(min(3, len(everything)), sum(flags.values()))
            kept[epoch][example.mention[:2]] = names
    assert kept[0] != kept[1] or all(len(e.mention.candidates) <= 3 for e in data.train)
    again = next(batches_of(data.train, config).batches(0))
    assert [e.mention for e in again] == [e.mention for e in first]


def test_mentions_without_texts_are_ranked_if_no_context_is_read(bench, tmp_path):
    bare = [replace(query, context="", start=None, end=None) for query in bench.queries]
    given = {"kb": bench.kb, "train": bare, "out": tmp_path / "run"}
    with pytest.raises(ConfigError, match=r"none of the \d+ has a text.*context_characters=0"):
        run_with(bench.config(steps=1), **given)
    run_with(bench.config(steps=1, context_characters=0), **given)
    linker = Linker.open(bench.kb, model=tmp_path / "run" / "model")
    assert not linker.uses_context
    assert len(linker.rank(bare, 2)) == len(bare)


def run_with(config, **given):
    encoder = config.encoder
    recipe = LinkerRecipe.load("linker-rerank", encoder=encoder)
    LINKERS.load("rerank").run(replace(recipe, config=config), LinkerTrainingData(**given))


def test_nothing_is_printed(bench, data, tmp_path, capfd):
    train_reranker(data, bench.config(steps=1), tmp_path / "run")
    assert capfd.readouterr() == ("", "")


def test_a_run_is_not_overwritten_and_not_mixed_with_other_mentions(bench, data, tmp_path):
    train_reranker(data, bench.config(steps=1), tmp_path)
    with pytest.raises(OutputError, match="exists already"):
        train_reranker(data, bench.config(steps=1), tmp_path)
    other = collect_examples(bench.kb, bench.linker, bench.queries[1:], bench.config())
    with pytest.raises(ConfigError, match=r"counts\.given = 60.* 59"):
        train_reranker(other, bench.config(steps=1), tmp_path, resume=True)


def test_candidates_of_a_trained_linker_want_its_folder(bench, data, tmp_path):
    class Other:
        def rank(self, queries, k):
            return bench.linker.rank(queries, k)

    other = collect_examples(bench.kb, Other(), bench.queries, bench.config())
    with pytest.raises(ConfigError, match="ranked by Other; give the folder"):
        train_reranker(other, bench.config(), tmp_path)


def test_a_list_is_taught_as_if_it_stood_alone():
    scores = torch.tensor([1.0, -0.5, 2.0, 0.3, 0.1], requires_grad=True)
    right = torch.tensor([True, False, True, False, True])
    loss, stats = listwise_loss(scores, right, [3, 2])
    alone = [
        marginal_loss(scores[None, part], right[None, part])[0] for part in (slice(3), slice(3, 5))
    ]
    assert loss.item() == pytest.approx(torch.stack(alone).mean().item())
    assert stats == {"accuracy": 0.5}
    (gradient,) = torch.autograd.grad(loss, scores)
    assert torch.isfinite(gradient).all()


def test_batches_hold_each_example_once_and_can_be_taken_up(bench, data):
    config = bench.config(batch_size=5)
    source = batches_of(data.train, config)
    batches = list(source.batches(1))
    assert len(batches) == len(source) == 10
    contexts = [example.mention.context.text for batch in batches for example in batch]
    assert sorted(contexts) == sorted(e.mention.context.text for e in data.train)
    assert list(source.batches(1, 7)) == batches[7:]
    assert list(source.batches(2)) != batches


def test_processes_share_an_epoch(bench, data):
    config = bench.config(batch_size=25)
    seen = [
        example.mention.context.text
        for rank in range(5)
        for batch in batches_of(data.train, config, rank=rank, world=5).batches(0)
        for example in batch
    ]
    assert len(seen) == len(set(seen)) == 45
    with pytest.raises(ConfigError, match="mentions: 48 are too few for 49 processes"):
        batches_of(data.train, bench.config(batch_size=49), world=49)


def test_the_linker_that_ranked_first_is_kept_with_the_re_ranker(bench, data, tmp_path):
    first = tmp_path / "first"
    first.mkdir()
    (first / "manifest.json").write_text("{}")
    result = train_reranker(data, bench.config(steps=1), tmp_path / "run", ranker=first)
    assert (result.model / "ranker" / "manifest.json").read_text() == "{}"
    inner = SearchRanker(bench.kb, {"lexical": 1.0})
    assert ContextReranker.load(result.model, bench.kb, inner).inner is inner
    with pytest.raises(StoreError, match="ranker: not a trained linker"):
        ContextReranker.load(result.model, bench.kb)


TWO_PROCESSES = """
import pickle, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from conftest import make_queries
from biograft.kb import KnowledgeBase
from biograft.linking import Linker
from biograft.linking import rerank as model
from biograft.training.linkers import collect_examples, train_reranker

model._DROPOUT = 0.0
given, kb, out = sys.argv[2:]
config = pickle.loads(Path(given).read_bytes())
kb = KnowledgeBase.open(kb)
train_reranker(collect_examples(kb, Linker.open(kb), make_queries(), config), config, out)
"""


@pytest.mark.slow
@pytest.mark.parametrize("reads", ["pairs", pytest.param("set", marks=pytest.mark.long)])
def test_two_processes_are_as_one(bench, tmp_path, monkeypatch, reads):
    monkeypatch.setattr(model, "_DROPOUT", 0.0)
    encoder = without_dropout(Path(bench.config().encoder), tmp_path / "encoder")
    config = replace(bench.config(epochs=1, held_out=0.2, reads=reads), encoder=str(encoder))
    data = collect_examples(bench.kb, bench.linker, bench.queries, config)
    train_reranker(data, config, tmp_path / "one")
    (tmp_path / "given").write_bytes(pickle.dumps(config))
    here, out = Path(__file__).parent, tmp_path / "two"
    run_on_two(TWO_PROCESSES, here, tmp_path / "given", bench.kb.folder, out, log=tmp_path / "log")
    assert len(losses(tmp_path / "one")) == 6
    assert losses(out) == pytest.approx(losses(tmp_path / "one"), abs=1e-5)
