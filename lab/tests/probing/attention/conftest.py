"""Fixtures for tests of attention: tiny encoders with large weights, plain and with knowledge."""

from __future__ import annotations

import pytest
import torch
from tiny_models import tiny_tokenizer
from transformers import AutoModelForMaskedLM, BertConfig, BertForMaskedLM

from biograft.models.knowledge import KnowledgeBertForMaskedLM
from biograft.models.pretrained import quiet_transformers

TEXTS = ("fever and high temperature hurt", "acute heart attack", "患者有高血压糖尿病史头痛")


def save(model, folder):
    with quiet_transformers():
        model.save_pretrained(folder)
        tiny_tokenizer(TEXTS).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def encoder_of(tmp_path_factory):
    """Write an encoder: ``encoder_of(layers=3, seed=0)``; the same is written once."""
    root, written = tmp_path_factory.mktemp("encoders"), {}

    def make(layers=3, seed=0, positions=40):
        key = (layers, seed, positions)
        if key not in written:
            config = BertConfig(
                vocab_size=len(tiny_tokenizer(TEXTS)),
                hidden_size=16,
                num_hidden_layers=layers,
                num_attention_heads=4,
                intermediate_size=16,
                max_position_embeddings=positions,
                initializer_range=0.4,
            )
            with torch.random.fork_rng():
                torch.manual_seed(seed)
                written[key] = save(BertForMaskedLM(config), root / f"{layers}-{seed}-{positions}")
        return written[key]

    return make


@pytest.fixture(scope="session")
def knowing_encoder(encoder_of, tmp_path_factory):
    """Write the first encoder with a knowledge layer behind its first layer."""
    with quiet_transformers():
        plain = AutoModelForMaskedLM.from_pretrained(encoder_of())
    table = torch.randn(7, 5, generator=torch.Generator().manual_seed(3))
    model = KnowledgeBertForMaskedLM.from_bert(
        plain, table, knowledge_layers={"entity_memory": {"after": 1, "n_nearest": 3}}
    )
    with torch.no_grad():  # so that it finds mentions, and adds much to them
        model.model.entity_table.weight.mul_(20)
    return save(model, tmp_path_factory.mktemp("knowing") / "model")
