"""Re-rankers that read a mention with all its candidates at once."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tiny_models import tiny_tokenizer
from transformers import (
    DebertaV2Config,
    DebertaV2Model,
    MPNetConfig,
    MPNetModel,
    Qwen3Config,
    Qwen3Model,
    XLMRobertaConfig,
    XLMRobertaModel,
)

from biograft.errors import ConfigError
from biograft.linking import Candidate, Context, CrossEncoder, Linker, MentionCandidates
from biograft.linking.rerank import CandidatePairReader, join_pairs
from biograft.training.linkers import collect_examples, train_reranker

TEXT = "fever and cold with chills"
CANDIDATES = [
    Candidate("TEMP", "Cold Temperature", "cold", 1.0),
    Candidate("ILL", "Cold", "Cold", 1.0),
    Candidate("HEAT", "Heat", "Heat", 0.2),
]
SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 66,
}
MODELS = {
    "xlm-roberta": (XLMRobertaModel, XLMRobertaConfig, {}),
    "qwen3": (Qwen3Model, Qwen3Config, {"num_key_value_heads": 2, "head_dim": 8}),
    "mpnet": (MPNetModel, MPNetConfig, {}),
    "deberta": (
        *(DebertaV2Model, DebertaV2Config),
        {"relative_attention": True, "pos_att_type": ["p2c"], "position_biased_input": False},
    ),
}


def encoder_of(kind, folder):
    """Write a random model of a family."""
    tokenizer = tiny_tokenizer([TEXT, "{ } ; common cold temperature heat disease none of these"])
    model, config, more = MODELS[kind]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model(config(vocab_size=len(tokenizer), pad_token_id=0, **SIZES, **more)).save_pretrained(
            folder
        )
    tokenizer.save_pretrained(folder)
    return str(folder)


def mention_with(candidates):
    start = TEXT.index("cold")
    return MentionCandidates("cold", Context(TEXT, start, start + 4), candidates)


@pytest.fixture
def reader(bench):
    config = bench.config(reads="set")
    model = CrossEncoder.start(config)
    with torch.no_grad():
        model.nil_bias.fill_(0.3)
        model.head.weight.normal_(generator=torch.Generator().manual_seed(1))
        for layer in model.model.encoder.layer:  # so that what tokens read of one another is seen
            layer.attention.output.dense.weight.mul_(5)
    return CandidatePairReader(bench.kb, model, config)


def plainly_scored(model, pairs):
    """Score the joined tokens of pairs, with positions and attention made token by token."""
    ids, types, owners, positions = [], [], [], []
    n = pairs[0].owners.count(0)
    for number, pair in enumerate(pairs, 1):
        for position, (token, kind) in enumerate(zip(pair.ids, pair.types, strict=True)):
            if position >= n or number == 1:
                ids.append(token)
                types.append(kind)
                owners.append(number if position >= n else 0)
                positions.append(position)
    ends = [i for i, own in enumerate(owners) if own and own not in owners[i + 1 :]]
    mask = torch.full((1, 1, len(ids), len(ids)), -torch.inf)
    for i, j in itertools.product(range(len(ids)), repeat=2):
        if owners[j] in (0, owners[i]) or j in ends:
            mask[0, 0, i, j] = 0.0
    states = model.model(
        input_ids=torch.tensor([ids]),
        token_type_ids=torch.tensor([types]),
        position_ids=torch.tensor([positions]),
        attention_mask=mask,
    ).last_hidden_state[0]
    scores = [float(states[end] @ model.head.weight[0] + model.head.bias[0]) for end in ends]
    return [*scores[:-1], scores[-1] + 0.3]


def test_scores_are_those_of_attention_written_out(reader):
    texts = ["Heat", "Cold ; common cold ; disease", "Cold Temperature ; cold", "none of these"]
    pairs = reader.model.pairs.tokenize(["fever and { cold } with chills"] * 4, texts)
    other = reader.model.pairs.tokenize(["{ cold }"] * 2, ["Cold", "none of these"])
    is_nil = np.array([False] * 3 + [True] + [False, True])
    found = reader.model.score([join_pairs(pairs), join_pairs(other)], is_nil, "fp32")
    reader.model.eval()
    with torch.no_grad():
        expected = plainly_scored(reader.model, pairs) + plainly_scored(reader.model, other)
    assert found == pytest.approx(expected, abs=1e-4)


def test_a_set_of_one_candidate_is_its_pair(reader):
    (pair,) = reader.model.pairs.tokenize(["fever { cold }"], ["Heat"])
    assert join_pairs([pair]) == pair


def test_the_order_of_candidates_has_no_effect_but_the_others_have(reader):
    (scores,) = reader.score([mention_with(CANDIDATES)], "fp32")
    for order in itertools.permutations(range(3)):
        (again,) = reader.score([mention_with([CANDIDATES[i] for i in order])], "fp32")
        assert again == pytest.approx(scores[[*order, 3]], abs=1e-4)
    (fewer,) = reader.score([mention_with(CANDIDATES[:2])], "fp32")
    assert np.abs(fewer[:2] - scores[:2]).min() > 1e-3


def test_a_batch_gives_what_each_mention_gives_alone(reader):
    mentions = [mention_with(CANDIDATES[:k]) for k in (3, 0, 1, 2)]
    mentions.append(MentionCandidates("cold", Context(), CANDIDATES))
    together = reader.score(mentions, "fp32")
    for mention, found in zip(mentions, together, strict=True):
        assert reader.score([mention], "fp32")[0] == pytest.approx(found, abs=1e-4)
    assert reader.score([]) == []


def test_a_set_may_be_longer_than_the_positions_of_the_encoder(reader):
    candidates = CANDIDATES * 20
    (mentions,), _ = reader.read([mention_with(candidates)])
    assert len(mentions.ids) > 4 * 64
    (scores,) = reader.score([mention_with(candidates)])
    assert len(scores) == 61


@pytest.mark.parametrize("kind", ["xlm-roberta", "qwen3"])
def test_order_has_no_effect_in_other_families(kind, bench, tmp_path):
    pooling = "lasttoken" if kind == "qwen3" else "cls"
    config = bench.config(reads="set", encoder=encoder_of(kind, tmp_path), pooling=pooling)
    reader = CandidatePairReader(bench.kb, CrossEncoder.start(config), config)
    orders = [reader.score([mention_with(c)], "fp32")[0] for c in (CANDIDATES, CANDIDATES[::-1])]
    assert orders[0] == pytest.approx(orders[1][[2, 1, 0, 3]], abs=1e-4)
    assert np.ptp(orders[0]) > 1e-4
    if kind == "qwen3":  # a decoder reads the mention without its candidates
        assert_mention_states_are_those_of_the_mention(reader)


def assert_mention_states_are_those_of_the_mention(reader):
    seen = []
    layers = reader.model.model.layers
    hook = layers[-1].register_forward_hook(lambda _, __, output: seen.append(output))
    for candidates in (CANDIDATES, CANDIDATES[:1]):
        reader.score([mention_with(candidates)], "fp32")
    hook.remove()
    n = reader.read([mention_with(CANDIDATES)])[0][0].owners.count(0)
    assert torch.allclose(seen[0][0, :n], seen[1][0, :n], atol=1e-5)


@pytest.mark.parametrize("kind", ["mpnet", "deberta"])
def test_encoders_with_positions_of_their_own_are_refused(kind, bench, tmp_path):
    """Guards: relative positions are counted along the input, whatever positions are given."""
    encoder = encoder_of(kind, tmp_path)
    with pytest.raises(ConfigError, match=r"reads: expected pairs for .* found set"):
        CrossEncoder.start(bench.config(reads="set", encoder=encoder))
    CrossEncoder.start(bench.config(encoder=encoder))


def test_a_trained_set_tells_meanings_and_nil_apart_and_resumes(bench, tmp_path):
    config = bench.config(reads="set", held_out=0.2)
    data = collect_examples(bench.kb, bench.linker, bench.queries, config)
    result = train_reranker(data, config, tmp_path / "run")
    manifest = json.loads((result.model / "manifest.json").read_text())
    assert manifest["report"]["held_out"]["context"] >= 0.9
    linker = Linker.open(bench.kb, model=result.model)
    first = [[ranked[0].concept for ranked in parts] for parts in linker.rank(bench.queries, 2)]
    known = [(row, query) for row, query in enumerate(bench.queries) if query.gold]
    assert np.mean([first[row][0] in query.gold for row, query in known]) > 0.9
    parts = tmp_path / "parts"
    short = bench.config(reads="set", steps=3)
    whole = train_reranker(data, short, tmp_path / "whole")
    stopped = bench.config(reads="set", steps=3, max_minutes=1e-9)
    for resume in (False, True, True):
        part = train_reranker(data, stopped, parts, resume=resume)
    tensors = [load_file(each.model / "head.safetensors") for each in (whole, part)]
    assert all(torch.equal(tensors[0][key], tensors[1][key]) for key in tensors[0])
