"""Causal models as generative linkers: equal to scoring each of 200 names by itself."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from generative_store import query_in, store_in
from safetensors.torch import load_file
from tiny_causal import CAUSAL, tiny_causal_folder
from tiny_models import tiny_encoder_folder
from transformers import AutoModelForCausalLM, AutoTokenizer

from biograft.errors import ConfigError, StoreError
from biograft.linking import (
    Context,
    GenerativeConfig,
    GenerativeTraining,
    Linker,
    NamesConfig,
    NameTrie,
    Seq2SeqLinker,
    load_ranker,
)
from biograft.models import BeamConfig, Seq2SeqModel
from biograft.models.adapters import LoraSettings
from biograft.training.linkers import Mentions, train_generative
from biograft.training.objectives import OBJECTIVES, NameExample, NameReader, ObjectiveModel

PARTS, KINDS = ("heart", "liver", "lung", "skin", "bone", "brain", "left eye", "right eye", "ear",
                "nose"), ("pain", "failure", "cancer", "injury", "infection", "atrophy", "burn",
                          "ulcer", "cyst", "swelling")  # fmt: skip
NAMES = [f"{k}{p} {kind}" for k in ("", "acute ") for p in PARTS for kind in KINDS]
TEXT = "She had heart pain and, later, an acute infection of the skin after a burn."
MENTIONS = [
    ("heart pain", Context(TEXT, 8, 18)),
    ("infection of the skin", Context(TEXT, 40, 61)),
    ("burn", Context(TEXT, 70, 74)),
    ("eye swelling", Context()),
]
TEXTS, CONTEXTS = [text for text, _ in MENTIONS], [context for _, context in MENTIONS]


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    concepts = [{"id": f"C{row}", "name": name} for row, name in enumerate(NAMES)]
    return store_in(tmp_path_factory.mktemp("many"), concepts)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    path = tmp_path_factory.mktemp("causal")
    texts = [*NAMES, TEXT, "start end is"]
    return {name: tiny_causal_folder(path / name, texts, name) for name in CAUSAL}


def linker_of(folder, kb, **config):
    chosen = GenerativeConfig(**config)
    model = Seq2SeqModel.from_pretrained(folder, device="cpu")
    return Seq2SeqLinker(kb, model, NameTrie.build(kb, model, chosen.names), chosen)


def lower_words(text):
    return " ".join(text.lower().split())


@torch.no_grad()
def plain_scores(folder, mention, context):
    """Score each name by transformers alone: one pass, no batch, no cache, no trie."""
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    before, after = "", ""
    if context.text:
        before, after = context.text[: context.start], context.text[context.end :]
    marked = f"{lower_words(before)} START {mention} END {lower_words(after)}"
    asked = tokenizer(f"{marked} {mention} is", add_special_tokens=False)["input_ids"]
    scores = []
    for name in NAMES:
        answer = tokenizer(name, add_special_tokens=False)["input_ids"] + [tokenizer.sep_token_id]
        given = torch.tensor([[tokenizer.cls_token_id, *asked, *answer]])
        logs = model(input_ids=given).logits[0, :-1].double().log_softmax(-1)
        own = [float(logs[position - 1, given[0, position]])
               for position in range(1 + len(asked), given.shape[1])]  # fmt: skip
        scores.append(sum(own) / len(own))
    return np.array(scores)


@pytest.mark.parametrize("name", CAUSAL)
def test_the_beam_gives_the_best_of_200_names_scored_each(folders, many, name):
    ranker = linker_of(folders[name], many, beam=BeamConfig(beams=len(NAMES)), batch=3)
    found = ranker.generate(TEXTS, CONTEXTS)
    concept_of = many.numbers("names", "concept")
    for line, mention in enumerate(MENTIONS):
        exact = plain_scores(folders[name], *mention)
        rows = [int(ranker.names.rows_of(s)[0]) for s in found.sequences[line]]
        names = [many.name(row).text for row in rows]
        expected = np.argsort(-exact)
        assert names[:5] == [NAMES[row] for row in expected[:5]]
        assert found.scores[line] == pytest.approx(exact[expected], abs=1e-4)
        assert sorted(names) == sorted(NAMES)
        assert len({int(concept_of[row]) for row in rows}) == len(NAMES)


@pytest.mark.parametrize("name", CAUSAL)
def test_neither_batch_nor_padding_changes_an_answer(folders, many, name):
    ranker = linker_of(folders[name], many, batch=4)
    together = ranker.generate(TEXTS, CONTEXTS)
    for line in range(len(TEXTS)):
        alone = ranker.generate(TEXTS[line : line + 1], CONTEXTS[line : line + 1])
        assert alone.sequences[0].tolist() == together.sequences[line].tolist()
        assert alone.scores[0] == pytest.approx(together.scores[line], abs=1e-4)


def test_a_short_list_is_scored_as_all_names_are(folders, many):
    ranker = linker_of(folders["Qwen3"], many, beam=BeamConfig(beams=len(NAMES)))
    every = ranker.generate(TEXTS[:1], CONTEXTS[:1])
    some = ranker.generate(TEXTS[:1], CONTEXTS[:1], [[3, 50, 120]])
    score_of = dict(zip(every.sequences[0].tolist(), every.scores[0].tolist(), strict=True))
    kept = [s for s in some.sequences[0].tolist() if s >= 0]
    assert len(kept) == 3
    assert some.scores[0][:3] == pytest.approx([score_of[s] for s in kept], abs=1e-4)


@pytest.mark.parametrize("name", CAUSAL)
def test_the_loss_is_that_of_the_name_alone(folders, many, name):
    """The mean over the tokens of names and ends, as the plain scores have it."""
    model = Seq2SeqModel.from_pretrained(folders[name], device="cpu")
    objectives = {"names": OBJECTIVES.load("name_generation")().build()}
    training = ObjectiveModel(NameReader(model, objectives), objectives).eval()
    examples = [
        NameExample("START heart pain END and", "heart pain is", "acute heart pain"),
        NameExample("START burn END", "", "skin burn"),
    ]
    loss, stats = training(objectives["names"].encode(model, examples))
    total, n = 0.0, 0
    for example in examples:
        asked, answer = model.tokens([f"{example.source} {example.prompt}", example.target])
        answer = [*answer, model.end]
        given = torch.tensor([[model.start, *asked, *answer]])
        with torch.no_grad():
            logs = model.model(input_ids=given).logits[0].double().log_softmax(-1)
        total -= sum(float(logs[len(asked) + k, token]) for k, token in enumerate(answer))
        n += len(answer)
    assert stats["names.nll"] == pytest.approx(total / n, abs=1e-5)
    loss.backward()


def test_a_plain_folder_links(folders, many):
    ranker = load_ranker(folders["Qwen3"], many)
    linker = Linker(many, None, ranker=ranker)
    (candidates,) = linker.link_mentions(["heart pain"])
    assert len(candidates) == 5
    assert ranker.name == "generative"


def test_limits_and_refusals(folders, many, tmp_path):
    model = Seq2SeqModel.from_pretrained(folders["Qwen3"])
    assert (model.max_source, model.max_target, model.longest_name) == (64, 64, 31)
    short = Seq2SeqModel.from_pretrained(folders["Qwen3"], max_target=16)
    assert (short.max_source, short.fingerprint() != model.fingerprint()) == (112, True)
    with pytest.raises(ConfigError, match=r"max_source: expected 8 to 64 for .*, found 65"):
        Seq2SeqModel.from_pretrained(folders["Qwen3"], max_source=65)
    long = "very " * 200
    read, begun = model.inputs([f"{long}START burn END{long}"], [f"{long} burn is"])
    assert read == [[]]
    assert len(begun[0]) == 64 + 33
    text = model.tokenizer.decode(begun[0])
    assert "burn" in text
    assert text.endswith("burn is")
    encoder = tiny_encoder_folder(tmp_path / "bert", NAMES)
    with pytest.raises(StoreError, match=r"a bert is no encoder-decoder; .* or a causal model"):
        Seq2SeqModel.from_pretrained(encoder)
    saved = tmp_path / "saved"
    model.save_pretrained(saved)
    assert Seq2SeqModel.from_pretrained(saved).fingerprint() == model.fingerprint()
    assert json.loads((saved / "config.json").read_text())["architectures"] == ["Qwen3ForCausalLM"]
    assert linker_of(saved, many, names=NamesConfig(lower=False)).generate(["burn"]).scores.any()


SAID = {"too much sugar": "D1", "tumour of the breast": "D2", "blocked heart": "D4"}
QUERIES = [
    query_in(f"{before} {mention} today", mention, concept)
    for before in ("she has", "known", "no sign of")
    for mention, concept in SAID.items()
]


@pytest.fixture(scope="module")
def untrained(named, tmp_path_factory):
    texts = [*named.table("names").column("text").to_pylist(), *(q.context for q in QUERIES)]
    folder = tmp_path_factory.mktemp("untrained") / "qwen"
    return tiny_causal_folder(folder, [*texts, "seen start end is"], scale=1)


def train_causal(named, folder, out, resume=False, **values):
    training = {"batch_size": 9, "learning_rate": 1e-2, "precision": "fp32", "clip": 1.0}
    training |= {key: values.pop(key) for key in ("steps", "max_minutes") if key in values}
    config = GenerativeConfig(
        model=str(folder), training=GenerativeTraining(**training), context_words=8, **values
    )
    return train_generative(named, Mentions(train=QUERIES), config, out, resume=resume)


def test_a_causal_model_learns_what_is_said(named, untrained, tmp_path):
    learnt = train_causal(named, untrained, tmp_path / "run", steps=60)
    linker = Linker.open(named, model=learnt.model)
    ranked = linker.rank([query_in(f"seen {mention}", mention) for mention in SAID], 5)
    assert [names[0][0].concept for names in ranked] == [*SAID.values()]
    model = AutoModelForCausalLM.from_pretrained(learnt.model / "model")
    assert type(model).__name__ == "Qwen3ForCausalLM"


def test_with_adapters_a_run_taken_up_again_is_the_same_to_the_last_bit(named, untrained, tmp_path):
    pytest.importorskip("peft")
    lora = LoraSettings(r=2, modules=("q_proj", "v_proj"))
    whole = train_causal(named, untrained, tmp_path / "whole", steps=4, lora=lora)
    parts = tmp_path / "parts"
    part = train_causal(named, untrained, parts, steps=4, lora=lora, max_minutes=1e-9)
    assert not part.training.finished
    rest = train_causal(named, untrained, parts, resume=True, steps=4, lora=lora)
    base = load_file(untrained / "model.safetensors")
    ours, theirs = (load_file(each.model / "model" / "model.safetensors") for each in (whole, rest))
    assert all(torch.equal(weight, theirs[name]) for name, weight in ours.items())
    moved = {name.split(".")[-2] for name in ours if not torch.equal(ours[name], base[name])}
    assert moved == {"q_proj", "v_proj"}
    assert (whole.model / "model" / "adapter" / "adapter_config.json").exists()
