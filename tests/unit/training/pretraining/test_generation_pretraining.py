"""Pre-training by name generation: a toy run learns, resumes, and accumulates batches."""

from __future__ import annotations

import json

import pytest
import torch
from tiny_models import tiny_encoder_folder
from tiny_seq2seq import SMALL
from two_processes import as_one, losses, pretrain_on_two

from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.models import NewDecoder, NewSeq2Seq, Seq2SeqModel
from biograft.training.pretraining import PretrainingRecipe, pretrain

TRAINING = {"steps": 10, "batch_size": 8, "precision": "fp32", "learning_rate": 3e-3}
PARTS = ("heart", "kidney", "liver", "lung", "skin", "bone", "brain", "colon")
KINDS = ("cancer", "failure", "injury", "pain")


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    """32 concepts of four names each, a third of them with a definition."""
    folder = tmp_path_factory.mktemp("generating")
    lines = [
        {
            "id": f"{part}-{kind}",
            "names": [
                f"{part} {kind}",
                f"{kind} of {part}",
                f"{kind} of the {part}",
                f"{part} {kind} disease",
            ],
            **({"definition": f"A {kind} that concerns the {part}."} if kind == "pain" else {}),
        }
        for part in PARTS
        for kind in KINDS
    ]
    (folder / "kb.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    build_store(BuildConfig(sources=(SourceConfig(path=folder / "kb.jsonl"),)), folder / "kb")
    return KnowledgeBase.open(folder / "kb")


@pytest.fixture
def recipe():
    def make(encoder=None, objective=None, stream=None, **training):
        begun = (
            {"encoder": encoder}
            if encoder
            else {"new": {"kind": "bart", "max_length": 48, "dropout": 0.0, **SMALL}}
        )
        return PretrainingRecipe.from_values(
            "tiny",
            {
                **begun,
                "stream": {"kind": "name_templates", **(stream or {})},
                "objective": {"name_generation": objective or {}},
                "training": TRAINING | training,
            },
        )

    return make


def metrics(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def fingerprint(result):
    return Seq2SeqModel.from_pretrained(result.encoder, device="cpu").fingerprint()


def test_a_toy_run_learns(kb, recipe, tmp_path):
    result = pretrain(recipe(steps=40, eval_every=20), kb, tmp_path / "run")
    found = losses(tmp_path / "run")
    assert sum(found[-5:]) < 0.75 * sum(found[:5])
    shown = [line["evaluation"] for line in metrics(tmp_path / "run") if "evaluation" in line]
    assert len(shown) == 3
    keys = ("loss", "nll", "accuracy", "exact", "n", "error")
    assert set(shown[0]) == {f"name_generation.{key}" for key in keys}
    assert shown[-1]["name_generation.loss"] < shown[0]["name_generation.loss"]
    assert result.counts["names"]["n_names"] == 128
    assert result.training_data == (
        "128 names of 32 concepts: 8 with a definition, 24 with several names, 0 with one"
    )
    plain = result.to_json()
    assert json.loads(json.dumps(plain)) == plain
    described = json.loads((tmp_path / "run" / "run.json").read_text())
    assert described["config"]["new"]["kind"] == "bart"
    assert described["config"]["new"]["width"] == SMALL["width"]


def test_a_resumed_run_gives_the_same_model(kb, recipe, tmp_path):
    whole = pretrain(recipe(save_every=5, stream={"bucket_batches": 3}), kb, tmp_path / "whole")
    stopped = recipe(max_minutes=1e-9, stream={"bucket_batches": 3})
    early = pretrain(stopped, kb, tmp_path / "parts")
    assert early.training.step == 1
    rest = pretrain(recipe(stream={"bucket_batches": 3}), kb, tmp_path / "parts", resume=True)
    assert rest.training.finished
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")
    assert fingerprint(rest) == fingerprint(whole)


@pytest.mark.parametrize("bucket", [pytest.param(0, marks=pytest.mark.long), 3])
def test_two_processes_are_as_one(kb, recipe, tmp_path, bucket):
    """Guards: each process grouped its own examples by length."""
    made = recipe(steps=4, stream={"bucket_batches": bucket})
    pretrain(made, kb, tmp_path / "one")
    pretrain_on_two(made, kb, tmp_path / "two")
    as_one(tmp_path / "one", tmp_path / "two")


def test_an_existing_model_is_trained_further(kb, recipe, tmp_path):
    made = NewSeq2Seq(max_length=48, dropout=0.0, **SMALL).create(["heart pain"] * 9, 0)
    made.save_pretrained(tmp_path / "bart")
    before = made.fingerprint()
    begun = {"name": str(tmp_path / "bart"), "max_length": 40, "dropout": 0.1}
    result = pretrain(
        recipe(encoder=begun, objective={"r_drop": 0.5}, steps=1), kb, tmp_path / "run"
    )
    after = Seq2SeqModel.from_pretrained(result.encoder, device="cpu")
    assert after.fingerprint() != before
    assert after.model.config.attention_dropout == 0.1
    assert after.tokens(["heart pain"]) == made.tokens(["heart pain"])


def test_an_encoder_gets_a_decoder_and_both_are_trained(kb, recipe, tmp_path):
    folder = tiny_encoder_folder(tmp_path / "bert", ["heart pain is the same as START END"])
    begun = {"name": str(folder), "max_length": 40, "decoder": {"layers": 1, "max_length": 32}}
    result = pretrain(recipe(encoder=begun, steps=2), kb, tmp_path / "run")
    after = Seq2SeqModel.from_pretrained(result.encoder, device="cpu")
    assert after.model.config.decoder.num_hidden_layers == 1
    given = Seq2SeqModel.from_pretrained(folder, decoder=NewDecoder(layers=1, max_length=32))
    for part in ("encoder", "decoder"):
        weights = [dict(getattr(each.model, part).named_parameters()) for each in (given, after)]
        assert not all(torch.equal(weights[0][key].cpu(), weights[1][key]) for key in weights[0])
