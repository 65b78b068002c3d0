"""The contract of every registered objective, and batches as tensors."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from graph_examples import random_graph
from tiny_models import tiny_tokenizer

from biograft.errors import ConfigError
from biograft.objectives import (
    OBJECTIVES,
    LossTerm,
    Objective,
    Setting,
    TensorBatch,
    TextExample,
    collate,
)

NAMES = list(OBJECTIVES)
WEIGHTS = {
    "context_entity_consistency": 2,
    "entity_segmentation": 2,
    "bidirectional_entity_masking": 0.5,
    "masked_neighbour": 2,
    "masked_mention": 4,
    "name_geometry": 20,
}
"""Weights that are not 1."""


def test_known_objectives():
    assert set(NAMES) >= {
        "masked_tokens", "entity_detection", "entity_linking", "next_sentence", "sentence_order",
        "context_entity_consistency", "entity_segmentation", "bidirectional_entity_masking",
        "masked_neighbour", "masked_mention", "entity_prediction", "name_geometry",
    }  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_an_objective_is_built_of_a_configuration_and_a_setting(name):
    fields = {
        "graph": random_graph(),
        "embeddings": torch.zeros(7, 4),
        "encoder": torch.nn.Identity(),
    }
    setting = Setting.of(tiny_tokenizer(["a b"]), width=4, **fields)
    config = OBJECTIVES.load(name)()
    assert config.weight == WEIGHTS.get(name, 1)
    objective = config.build(setting)
    assert isinstance(objective, Objective)
    assert objective.name == name
    for term in objective.terms.values():
        assert isinstance(term, LossTerm)
    with pytest.raises(ConfigError, match="weight: expected at least 0, found nan"):
        dataclasses.replace(config, weight=float("nan"))


def test_a_setting_comes_from_the_tokenizer():
    tokenizer = tiny_tokenizer(["a b"])
    setting = Setting.of(tokenizer, width=4)
    assert setting.mask == tokenizer.convert_tokens_to_ids("[MASK]")
    assert setting.special == (0, 1, 2, 3, 4)
    assert setting.n_tokens == len(tokenizer)
    assert setting.entity_visibility == "mixed"
    assert Setting.of(tokenizer, width=4, entity_visibility="all").entity_visibility == "all"
    tokenizer.mask_token = None
    with pytest.raises(ConfigError, match="has no mask token"):
        Setting.of(tokenizer, width=4)


def test_every_field_becomes_a_tensor_of_the_same_numbers():
    example = TextExample(
        tokens=np.array([2, 5, 3]),
        segments=np.array([0, 0, 1]),
        words=np.array([-1, 0, -1]),
        mentions=np.array([[1, 1, 4]]),
        token_labels={"a": np.array([0, 1, 2])},
        mention_labels={"b": np.array([8])},
        labels={"c": 1},
    )
    batch = collate([example, example], 0)
    tensors = TensorBatch.of(batch)
    assert len(tensors) == 2
    for name in ("tokens", "mask", "segments", "mentions", "entities"):
        assert torch.equal(getattr(tensors, name), torch.from_numpy(getattr(batch, name)))
    for name, key in (("token_labels", "a"), ("mention_labels", "b"), ("labels", "c")):
        assert getattr(tensors, name)[key].tolist() == getattr(batch, name)[key].tolist()
