"""What every registered objective of running text offers; a new one joins by its name."""

from __future__ import annotations

import dataclasses
import inspect

import pytest
import torch
from graph_examples import random_graph
from tiny_models import tiny_tokenizer

from biograft.errors import ConfigError
from biograft.objectives import OBJECTIVES
from biograft.objectives.examples import Setting

OF_TEXT = [
    name
    for name in OBJECTIVES
    if "setting" in inspect.signature(OBJECTIVES.load(name).build).parameters
]
WEIGHTS = {
    "context_entity_consistency": 2,
    "entity_segmentation": 2,
    "bidirectional_entity_masking": 0.5,
    "masked_neighbour": 2,
    "masked_mention": 4,
}
"""Weights as published, where they are not 1."""


def test_objectives_of_text_are_known():
    assert set(OF_TEXT) >= {
        "masked_tokens", "entity_detection", "entity_linking", "next_sentence", "sentence_order",
        "context_entity_consistency", "entity_segmentation", "bidirectional_entity_masking",
        "masked_neighbour", "masked_mention", "entity_prediction",
    }  # fmt: skip


@pytest.mark.parametrize("name", OF_TEXT)
def test_an_objective_of_text_prepares_counts_and_gives_a_loss(name):
    known = {"graph": random_graph(), "embeddings": torch.zeros(7, 4)}
    setting = Setting.of(tiny_tokenizer(["a b"]), width=4, **known)
    config = OBJECTIVES.load(name)()
    assert config.weight == WEIGHTS.get(name, 1)
    made = config.build(setting)
    assert callable(made.prepare)
    for term in getattr(made, "terms", {name: made}).values():
        assert callable(term.count)
        assert callable(term.loss)
    with pytest.raises(ConfigError, match="weight: expected at least 0, found nan"):
        dataclasses.replace(config, weight=float("nan"))


def test_a_setting_comes_from_the_tokenizer():
    tokenizer = tiny_tokenizer(["a b"])
    setting = Setting.of(tokenizer, width=4)
    assert setting.mask == tokenizer.convert_tokens_to_ids("[MASK]")
    assert setting.special == (0, 1, 2, 3, 4)
    assert setting.n_tokens == len(tokenizer)
    assert setting.shown == "hidden"
    assert Setting.of(tokenizer, width=4, shown="all").shown == "all"
    tokenizer.mask_token = None
    with pytest.raises(ConfigError, match="has no mask token"):
        Setting.of(tokenizer, width=4)
