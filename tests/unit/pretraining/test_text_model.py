"""All objectives of running text in one model: what they are given, and how losses are added up."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForMaskedLM

from biograft.nn.knowledge import KnowledgeBertConfig, KnowledgeBertForMaskedLM
from biograft.objectives import OBJECTIVES
from biograft.objectives.base import TensorBatch
from biograft.objectives.examples import (
    CONSISTENT,
    HEAD_OFFSET,
    IGNORED,
    SEGMENT_ENDS,
    Setting,
    TextExample,
    collate,
)
from biograft.pretraining.language_modelling import TextModel, TextTraining, sort_by_order

N_TOKENS, WIDTH, MASK = 40, 8, 4
SIZES = {
    "vocab_size": N_TOKENS,
    "hidden_size": WIDTH,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 32,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "initializer_range": 0.3,
}
SETTING = Setting(mask=MASK, n_tokens=N_TOKENS, special=(0, 1, 2, 3, 4), width=WIDTH)
EMBERT = {
    "masked_tokens": {},
    "context_entity_consistency": {},
    "entity_segmentation": {},
    "bidirectional_entity_masking": {"share": 1.0, "max_token_ratio": 0.3, "position_dim": 4},
}


def bert():
    torch.manual_seed(0)
    return BertForMaskedLM(BertConfig(**SIZES))


def knowing():
    torch.manual_seed(0)
    return KnowledgeBertForMaskedLM(
        KnowledgeBertConfig(**SIZES, knowledge_after=1, n_entities=3, entity_dim=4, n_nearest=2)
    )


def example(seed):
    """A text of 16 to 20 words with a long mention of five and a short one that was replaced."""
    rng = np.random.default_rng([9, seed])
    n_words = int(rng.integers(16, 21))
    tokens = np.array([2, *rng.integers(5, N_TOKENS, size=n_words), 3])
    ends = np.full(len(tokens), IGNORED)
    ends[3:8] = [0, 1, 0, 1, 1]
    return TextExample(
        tokens=tokens,
        segments=np.zeros_like(tokens),
        words=np.array([-1, *range(n_words), -1]),
        mentions=np.array([[3, 7, 0], [10, 11, 1]]),
        token_labels={SEGMENT_ENDS: ends},
        mention_labels={
            HEAD_OFFSET: np.array([6 if seed % 2 else 5, IGNORED]),
            CONSISTENT: np.array([IGNORED, seed % 2]),
        },
    )


def reading(lm=None, **options):
    tables = {name: table | options.get(name, {}) for name, table in EMBERT.items()}
    made = {name: OBJECTIVES.load(name)(**table).build(SETTING) for name, table in tables.items()}
    return TextTraining(TextModel(lm or bert(), made))


def prepared(made, n):
    examples = []
    for seed in range(n):
        rng, found = np.random.default_rng([9, seed]), example(seed)
        for objective in sort_by_order(made.model.objectives.values()):
            found = objective.prepare(found, rng)
        examples.append(found)
    return examples


@pytest.mark.parametrize("lm", [bert, knowing])
def test_objectives_are_given_the_vectors_of_tokens(lm):
    model = lm()
    states = TextModel(model, {}).states(TensorBatch.of(collate([example(0)], 0)))
    assert states.embeddings is model.get_input_embeddings().weight
    assert states.embeddings.shape == (N_TOKENS, WIDTH)


def test_those_that_come_first_prepare_first_and_others_as_they_are_named():
    named = [SimpleNamespace(name=name, **turn) for name, turn in {
        "a": {}, "b": {"turn": 1}, "c": {"turn": -1}, "d": {"turn": 0}, "e": {"turn": -2}, "f": {},
    }.items()]  # fmt: skip
    assert "".join(each.name for each in sort_by_order(named)) == "ecadfb"


@pytest.mark.parametrize("order", [list(EMBERT), list(reversed(EMBERT))])
def test_masked_tokens_leave_alone_what_the_others_hide_or_need(order):
    made = {name: OBJECTIVES.load(name)(**EMBERT[name]).build(SETTING) for name in order}
    n_hidden = []
    for seed in range(200):
        rng, given = np.random.default_rng([9, seed]), example(seed)
        found = given
        for objective in sort_by_order(made.values()):
            found = objective.prepare(found, rng)
        assert found.tokens[10:12].tolist() == given.tokens[10:12].tolist()
        asked = [found.token_labels[name] != IGNORED for name in (
            "masked_tokens", "bidirectional_entity_masking.head",
            "bidirectional_entity_masking.adjective",
        )]  # fmt: skip
        assert sum(asked).max() == 1
        assert (asked[1] | asked[2]).sum() in (2, 3)
        n_hidden.append(int(sum(asked).sum()) / (len(given.tokens) - 2))
    assert np.mean(n_hidden) == pytest.approx(0.15, abs=0.02)


@pytest.mark.parametrize("reduction", ["mean", "printed"])
def test_an_update_is_the_same_in_one_batch_or_several(reduction):
    """Each term by its own count: hidden heads and adjective parts are dealt unevenly."""
    own = {"reduction": reduction}
    made = reading(entity_segmentation=own, bidirectional_entity_masking=own)
    examples = prepared(made, 9)
    whole, stats = made.loss(made.model, collate(examples, 0), {})
    parts = [collate(examples[start:end], 0) for start, end in [(0, 2), (2, 3), (3, 9)]]
    counts = [made.counts(part) for part in parts]
    assert {"masked_tokens", "bidirectional_entity_masking.head"} < set(counts[0])
    total, added = 0.0, dict.fromkeys(stats, 0.0)
    for part, count in zip(parts, counts, strict=True):
        multipliers = {
            name: count[name] * len(parts) / max(1, sum(each[name] for each in counts))
            for name in count
        }
        loss, found = made.loss(made.model, part, multipliers)
        total += float(loss.detach()) / len(parts)
        added = {key: added[key] + found[key] / len(parts) for key in added}
    assert total == pytest.approx(float(whole.detach()), rel=1e-5)
    with torch.no_grad():
        evaluated = made.evaluate(parts, "fp32")
    for key in stats:
        assert added[key] == pytest.approx(stats[key], rel=1e-5)
        assert evaluated[key] == pytest.approx(stats[key], rel=1e-5)


def test_what_is_drawn_for_held_out_batches_is_the_same_each_time(monkeypatch):
    made = reading()
    batches = [collate(prepared(made, 3), 0)]
    monkeypatch.setattr(
        made.model, "forward", lambda *given: (None, {"masked_tokens.loss": float(torch.rand(()))})
    )
    torch.manual_seed(1)
    found = {made.evaluate(batches, "fp32")["masked_tokens.loss"] for _ in range(3)}
    assert len(found) == 1
    drawn = float(torch.rand(()))
    torch.manual_seed(1)
    assert drawn == float(torch.rand(()))  # training draws as if there had been no evaluation


def test_the_loss_is_the_weighted_sum_of_all_terms_and_reaches_every_weight():
    made = reading(knowing(), bidirectional_entity_masking={"shared": False, "longest": 3})
    loss, stats = made.loss(made.model, collate(prepared(made, 12), 0), {})
    weights = {
        "masked_tokens": 1, "context_entity_consistency": 2, "entity_segmentation": 2,
        "bidirectional_entity_masking.head": 0.5, "bidirectional_entity_masking.adjective": 0.5,
    }  # fmt: skip
    assert {key.rpartition(".")[0] for key in stats} == set(weights)
    wanted = sum(weight * stats[f"{name}.loss"] for name, weight in weights.items())
    assert float(loss.detach()) == pytest.approx(wanted, rel=1e-5)
    loss.backward()
    assert len(list(made.model.heads.parameters())) == 4 + 6 + 2 * 7
    for name, parameter in made.model.heads.named_parameters():
        assert parameter.grad.any(), name
