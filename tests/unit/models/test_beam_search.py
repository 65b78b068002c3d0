"""Constrained beam search: against published results and against scoring every name."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    EncoderDecoderConfig,
    EncoderDecoderModel,
    T5Config,
    T5ForConditionalGeneration,
)

from biograft.models import BeamConfig, GeneratedNames, GenerationInputs, generate_names, pad
from biograft.text.trie import FlatTrie

START, END, IS = 2, 2, 16
FOLDER = "parity/genbioel"


def trie_of(names: list[list[int]]) -> tuple[FlatTrie, np.ndarray]:
    """Put names into a trie; also say which number each has."""
    tokens = [token for name in names for token in [*name, END]]
    ends = np.cumsum([len(name) + 1 for name in names])
    return FlatTrie.build(np.array(tokens, np.int64), ends.astype(np.int64))


@pytest.fixture
def published(shared_data):
    folder = shared_data(FOLDER)
    model = BartForConditionalGeneration.from_pretrained(folder).eval()
    beam = json.loads((folder / "beam.json").read_text())
    names = json.loads((folder / "names.json").read_text())["names"]
    return model, beam, [name["tokens"] for name in names]


def inputs(cases) -> GenerationInputs:
    given = pad([case["encoder_input"] for case in cases], 1)
    return GenerationInputs(
        given["input_ids"], given["attention_mask"], [[START, *case["prompt"]] for case in cases]
    )


def run(model, cases, names, **settings) -> GeneratedNames:
    trie, numbers = trie_of(names)
    found = generate_names(
        model,
        inputs(cases),
        trie,
        config=BeamConfig(**settings),
    )
    name_of = np.full(trie.n_sequences + 1, -1)  # the last stands for no sequence
    name_of[numbers] = np.arange(len(names))
    return GeneratedNames(name_of[found.sequences], found.scores)


def test_published_search_is_reproduced(published):
    model, beam, names = published
    found = run(model, beam["cases"], names, published=True)
    for case, own, scores in zip(beam["cases"], *found, strict=True):
        # where the mention itself has the word "is", published scores begin too early
        expected = {each["name"]: each["mean_after_prompt_float64"] for each in case["beam"]}
        assert dict(zip(own.tolist(), scores.tolist(), strict=True)) == pytest.approx(
            expected, rel=1e-5
        )
        if not case["mention_contains_16"]:
            assert own.tolist() == case["beam_names"]
        assert scores.tolist() == sorted(scores.tolist(), reverse=True)


def test_as_many_beams_as_names_rank_all_of_them_exactly(published, shared_data):
    from safetensors.numpy import load_file

    model, beam, names = published
    truth = load_file(shared_data(FOLDER) / "exhaustive.safetensors")["name_scores"]
    found = run(model, beam["cases"], names, beams=len(names))
    for expected, own, scores in zip(truth, *found, strict=True):
        assert own.tolist() == np.argsort(-expected, kind="stable").tolist()
        assert scores == pytest.approx(np.sort(expected)[::-1], rel=1e-5)


# ---- small models, made here


def bart() -> BartForConditionalGeneration:
    torch.manual_seed(3)
    config = BartConfig(
        vocab_size=60,
        d_model=16,
        encoder_layers=1,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        max_position_embeddings=64,
        init_std=0.6,
    )
    return BartForConditionalGeneration(config).eval()


def t5() -> T5ForConditionalGeneration:
    torch.manual_seed(3)
    config = T5Config(vocab_size=60, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2)
    return T5ForConditionalGeneration(config).eval()


def decoder_on_bert() -> EncoderDecoderModel:
    torch.manual_seed(3)
    sizes = {
        "vocab_size": 60,
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "initializer_range": 0.6,
    }
    config = EncoderDecoderConfig.from_encoder_decoder_configs(
        BertConfig(**sizes), BertConfig(**sizes)
    )
    return EncoderDecoderModel(config).eval()


def random_names(n: int, seed: int, longest: int = 5) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    found = {tuple(rng.integers(3, 60, rng.integers(1, longest + 1)).tolist()) for _ in range(n)}
    return [list(name) for name in sorted(found)]


def random_cases(n: int, seed: int) -> list[dict]:
    rng = np.random.default_rng(seed)
    return [
        {
            "encoder_input": [0, *rng.integers(3, 60, rng.integers(2, 9)).tolist(), END],
            "prompt": [*rng.integers(3, 60, rng.integers(0, 5)).tolist(), IS],
        }
        for _ in range(n)
    ]


@torch.no_grad()
def score_every_name(model, case: dict, names: list[list[int]]) -> np.ndarray:
    """Score names by one pass of the model each: the mean log-probability of name and end."""
    scores = []
    for name in names:
        given = [START, *case["prompt"], *name]
        source = torch.tensor([case["encoder_input"]])
        logits = model(input_ids=source, decoder_input_ids=torch.tensor([given])).logits[0]
        own = logits.double().log_softmax(-1)[len(case["prompt"]) :]
        scores.append(float(own[torch.arange(len(name) + 1), [*name, END]].mean()))
    return np.array(scores)


@pytest.mark.parametrize("make", [bart, t5, decoder_on_bert])
def test_the_ranking_of_a_wide_beam_is_that_of_scoring_every_name(make):
    model, names, cases = make(), random_names(30, 0), random_cases(5, 0)
    truth = [score_every_name(model, case, names) for case in cases]
    found = run(model, cases, names, beams=len(names))
    for expected, own, scores in zip(truth, *found, strict=True):
        assert sorted(own.tolist()) == list(range(len(names)))
        assert scores == pytest.approx(expected[own], abs=1e-5)
        assert (np.diff(scores) <= 0).all()


@pytest.mark.parametrize("settings", [{}, {"published": True}, {"renormalise": True}])
def test_results_do_not_depend_on_the_batch(settings):
    model, names, cases = bart(), random_names(60, 1), random_cases(7, 1)
    together = run(model, cases, names, beams=4, **settings)
    for row, case in enumerate(cases):
        alone = run(model, [case], names, beams=4, **settings)
        assert alone.sequences[0].tolist() == together.sequences[row].tolist()
        assert alone.scores[0] == pytest.approx(together.scores[row], abs=1e-5)


def test_renormalised_probabilities_sum_to_one():
    model, names, cases = bart(), random_names(40, 2), random_cases(3, 2)
    trie, _ = trie_of(names)
    found = run(model, cases, names, beams=len(names), renormalise=True)
    assert trie.n_sequences == len(names)
    for own, scores in zip(*found, strict=True):
        lengths = np.array([len(names[name]) + 1 for name in own])
        assert np.exp(scores * lengths).sum() == pytest.approx(1, abs=1e-4)


def test_every_mention_begins_at_its_own_node():
    """Candidate lists of mentions are one trie whose first token is the number of the mention."""
    model, names, cases = bart(), random_names(40, 4), random_cases(3, 4)
    lists = [names[:9], names[5:20], names[3:4]]
    forest, numbers = trie_of([[k, *name] for k, own in enumerate(lists) for name in own])
    roots = np.array([forest.child(forest.root, k) for k in range(3)])
    found = generate_names(
        model,
        inputs(cases),
        forest,
        roots=roots,
    )
    offsets = np.cumsum([0, *map(len, lists)])
    for k, own in enumerate(lists):
        alone = run(model, [cases[k]], own)
        numbers_of = numbers[offsets[k] : offsets[k + 1]]
        expected = np.where(alone.sequences[0] >= 0, numbers_of[alone.sequences[0]], -1)
        assert found.sequences[k].tolist() == expected.tolist()


def test_length_penalty():
    model, names, cases = bart(), random_names(30, 6), random_cases(3, 6)
    found = run(model, cases, names, beams=len(names), length_penalty=0.0)
    plain = run(model, cases, names, beams=len(names))
    for own, scores, own_plain, means in zip(*found, *plain, strict=True):
        lengths = {name: len(names[name]) + 1 for name in own.tolist()}
        sums = {n: s * lengths[n] for n, s in zip(own_plain.tolist(), means, strict=True)}
        assert dict(zip(own.tolist(), scores, strict=True)) == pytest.approx(sums, abs=1e-4)
