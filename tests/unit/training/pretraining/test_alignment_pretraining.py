"""A whole run on the starter knowledge base with a tiny encoder."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
from manifests import changed, contents
from one_writer import held_elsewhere
from safetensors.torch import load_file
from two_processes import loads_after_joining, pretrain_on_two, without_dropout

from biograft.errors import ConfigError, OutputError
from biograft.models import TextEncoder
from biograft.models.adapters import LoraSettings
from biograft.training.pretraining import pretrain

NAME = "synonym_alignment"


def metrics(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_a_run_brings_names_of_a_concept_together(bench, tmp_path):
    result = pretrain(bench.recipe(steps=40, eval_every=20), bench.kb, tmp_path / "run")
    assert result.training.finished
    shown = [line["evaluation"] for line in metrics(tmp_path / "run") if "evaluation" in line]
    first, last = shown[0], shown[-1]
    assert len(shown) == 3
    assert last[f"{NAME}.loss"] < first[f"{NAME}.loss"]

    def gap(found):
        return found[f"{NAME}.positive_cosine"] - found[f"{NAME}.negative_cosine"]

    assert gap(last) > gap(first) + 0.1
    assert sum(first[f"{NAME}.cosines"]["before_mining"]["positive"]) > 0
    described = json.loads((tmp_path / "run" / "run.json").read_text())
    assert described["provenance"]["pairs"] == result.counts["pairs"]
    assert described["config"]["training"]["steps"] == 40
    plain = result.to_json()
    assert json.loads(json.dumps(plain)) == plain


def test_a_resumed_run_gives_the_same_encoder(bench, tmp_path):
    whole = pretrain(bench.recipe(steps=6), bench.kb, tmp_path / "whole")
    part = pretrain(bench.recipe(steps=6, max_minutes=1e-9), bench.kb, tmp_path / "parts")
    assert not part.training.finished
    rest = pretrain(bench.recipe(steps=6), bench.kb, tmp_path / "parts", resume=True)
    assert rest.training.finished
    one, two = (TextEncoder.from_pretrained(r.encoder).fingerprint() for r in (whole, rest))
    assert one == two
    with pytest.raises(ConfigError, match=r"started with training.steps = 6, found 7"):
        pretrain(bench.recipe(steps=7), bench.kb, tmp_path / "parts", resume=True)


def test_a_limit_of_the_device_changes_no_loss(bench, tmp_path):
    """Guards: passes of a part of a batch mined other negatives; then they were refused."""
    encoder = without_dropout(bench.encoder, tmp_path / "no-dropout")
    runs = []
    for limit in (0, 3):
        made = bench.recipe(steps=4, batch_size=8, device_batch_size=limit)
        recipe = replace(made, encoder=replace(made.encoder, name=str(encoder)))
        result = pretrain(recipe, bench.kb, tmp_path / str(limit))
        lines = [line for line in metrics(result.run) if "loss" in line]
        runs.append([(line["loss"], line["gradient_norm"], line["rows"]) for line in lines])
    assert runs[1] == [pytest.approx(line, rel=1e-4) for line in runs[0]]


def test_the_best_encoder_on_dev_is_kept(bench, tmp_path):
    names = [bench.kb.concept_at(row) for row in range(0, 200, 2)]
    gold = tmp_path / "dev.txt"
    gold.write_text("".join(f"d||0|1||x||{c.names[-1].text}||{c.id}\n" for c in names))
    made = bench.recipe(steps=30, eval_every=10, learning_rate=1e-3)
    dev = replace(made.stream, dev=gold, dev_format="biosyn")
    result = pretrain(replace(made, stream=dev), bench.kb, tmp_path / "run")
    shown = [line["evaluation"]["acc@1"] for line in metrics(result.run) if "evaluation" in line]
    assert len(shown) == 4
    best = json.loads((result.run / "best.json").read_text())
    assert best == {"acc@1": max(shown)}
    kept = TextEncoder.from_pretrained(result.encoder)
    assert kept.fingerprint() == TextEncoder.from_pretrained(result.run / "best").fingerprint()
    assert f"| acc@1 | {max(shown):.4g} |" in (result.encoder / "README.md").read_text()
    wrong = replace(dev, dev_format="tsv")
    with pytest.raises(ConfigError, match="dev_format: expected one of biosyn"):
        pretrain(replace(made, stream=wrong), bench.kb, tmp_path / "other")


def test_resume_of_a_finished_run_changes_no_file(bench, tmp_path):
    """The encoder was written again: another date, and a card without the loss."""
    finished = pretrain(bench.recipe(steps=6, eval_every=3), bench.kb, tmp_path / "run")
    before = contents(finished.run)
    again = pretrain(bench.recipe(steps=6, eval_every=3), bench.kb, tmp_path / "run", resume=True)
    assert changed(before, finished.run) == []
    assert again.training.metrics() == finished.training.metrics()


def test_two_processes_train_as_one_with_the_whole_batch(bench, tmp_path):
    """Guards: each process mined among its own names only, so two were not one with twice as many.

    The gradient of the keys' biases is 0 but for rounding, which Adam scales up.
    """
    encoder = without_dropout(bench.encoder, tmp_path / "no-dropout")
    made = bench.recipe(batch_size=16)
    recipe = replace(made, encoder=replace(made.encoder, name=str(encoder)))
    one = pretrain(recipe, bench.kb, tmp_path / "one")
    pretrain_on_two(recipe, bench.kb, tmp_path / "two")
    entries = [
        [line for line in metrics(tmp_path / run) if "loss" in line] for run in ("one", "two")
    ]
    for ours, theirs in zip(*entries, strict=True):
        keys = ("loss", "gradient_norm", f"{NAME}.triplets_kept", f"{NAME}.anchors_kept", "rows")
        assert {key: theirs[key] for key in keys} == pytest.approx(
            {key: ours[key] for key in keys}, rel=1e-5, abs=1e-5
        )
    before, whole, halves = (
        load_file(folder / "model.safetensors")
        for folder in (encoder, one.encoder, tmp_path / "two" / "encoder")
    )
    moved = 0.0
    for name, weight in whole.items():
        if not name.endswith("key.bias"):
            torch.testing.assert_close(halves[name], weight, rtol=0, atol=1e-5, msg=name)
            moved = max(moved, float((weight - before[name]).abs().max()))
    assert moved > 1e-3


def test_processes_join_before_the_encoder_is_loaded(bench, tmp_path, monkeypatch):
    with loads_after_joining(monkeypatch):
        pretrain(bench.recipe(), bench.kb, tmp_path / "run")


def test_a_run_that_another_process_writes_is_refused_at_once(bench, tmp_path):
    with held_elsewhere(tmp_path / "run"), pytest.raises(OutputError):
        pretrain(bench.recipe(), bench.kb, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_adapters_alone_are_trained_and_a_run_with_them_resumes_exactly(bench, tmp_path):
    pytest.importorskip("peft")

    def recipe(**training):
        made = bench.recipe(steps=6, **training)
        return replace(made, encoder=replace(made.encoder, lora=LoraSettings(r=2, dropout=0.1)))

    whole = pretrain(recipe(), bench.kb, tmp_path / "whole")
    part = pretrain(recipe(max_minutes=1e-9), bench.kb, tmp_path / "parts")
    assert not part.training.finished
    rest = pretrain(recipe(), bench.kb, tmp_path / "parts", resume=True)
    ours, theirs, base = (
        load_file(folder / "model.safetensors")
        for folder in (whole.encoder, rest.encoder, bench.encoder)
    )
    assert all(torch.equal(weight, theirs[name]) for name, weight in ours.items())
    moved = {name for name, weight in ours.items() if not torch.equal(weight, base[name])}
    assert moved
    assert all(name.endswith(".weight") and base[name].ndim == 2 for name in moved)
    assert not any("embeddings" in name for name in moved)
    state = load_file(rest.training.checkpoint / "optimiser.safetensors")
    assert all("lora_" in name for name in state)
    adapter = load_file(whole.encoder / "adapter" / "adapter_model.safetensors")
    n_weights = sum(weight.numel() for weight in adapter.values())
    assert sum(w.numel() for w in state.values() if w.ndim) <= 2 * n_weights  # the means of Adam


def test_two_towers_are_aligned(bench, tmp_path):
    """Both are trained, as one encoder is, and a limit of the device changes no loss."""
    encoder = without_dropout(bench.encoder, tmp_path / "no-dropout")
    runs = []
    for limit in (0, 3):
        made = bench.recipe(steps=4, device_batch_size=limit)
        towers = replace(made.encoder, name=str(encoder), query_encoder=str(encoder))
        result = pretrain(replace(made, encoder=towers), bench.kb, tmp_path / str(limit))
        runs.append([line["loss"] for line in metrics(result.run) if "loss" in line])
    assert runs[0] == pytest.approx(runs[1], rel=1e-4)
    both = TextEncoder.from_pretrained(result.encoder)
    base = TextEncoder.from_pretrained(encoder, pooling="mean", max_length=16, lower=True)
    prints = {both.query.fingerprint(), both.fingerprint(), base.fingerprint()}
    assert len(prints) == 3
    query = both.encode(["heart attack"], prompt_name="query")
    assert not (query == both.encode(["heart attack"])).all()
