"""Fine-tuning with low-rank adapters and with another encoder for queries."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from biograft.linking import DenseConfig, DenseIndex
from biograft.models import TextEncoder
from biograft.models.adapters import LoraSettings
from biograft.training.linkers import finetune_encoder


@pytest.mark.parametrize("loss", ["contrastive", "bank"])
def test_adapters_alone_are_trained(clinic, config_of, tmp_path, loss):
    pytest.importorskip("peft")
    plain = clinic.load()
    encoder = TextEncoder.from_pretrained(
        plain.folder, pooling=plain.pooling, max_length=plain.max_length, lora=LoraSettings(r=2)
    )
    before = {name: weight.clone() for name, weight in plain.model.state_dict().items()}
    config = config_of(loss=loss, training={"steps": 3, "batch_size": 8})
    result = finetune_encoder(clinic.kb, encoder, clinic.mentions, config, tmp_path / "run")
    after = load_file(result.model / "model.safetensors")
    moved = {name for name, weight in after.items() if not torch.equal(weight, before[name])}
    assert moved
    assert not any("embeddings" in name or name.endswith("bias") for name in moved)
    assert (result.model / "adapter" / "adapter_model.safetensors").exists()


@pytest.mark.parametrize("loss", ["contrastive", "bank"])
def test_two_towers_learn_and_link(clinic, config_of, tmp_path, loss):
    plain = clinic.load()
    both = TextEncoder.from_pretrained(
        plain.folder,
        pooling=plain.pooling,
        max_length=plain.max_length,
        query_encoder=plain.folder,
    )
    config = config_of(loss=loss, training={"epochs": 20, "batch_size": 8})
    result = finetune_encoder(clinic.kb, both, clinic.mentions, config, tmp_path / "run")
    trained = TextEncoder.from_pretrained(result.model)
    assert trained.query is not None
    index = DenseIndex.build(clinic.kb, trained, tmp_path / "index", DenseConfig(precision="fp32"))
    hits = index.search([mention.text for mention in clinic.mentions], 1).rows[:, 0]
    concepts = clinic.kb.numbers("names", "concept")
    found = [clinic.kb.id_at(int(concepts[row])) for row in hits]
    right = [own in m.concepts for own, m in zip(found, clinic.mentions, strict=True)]
    assert sum(right) >= len(right) - 1
    names = [clinic.kb.name(row).text for row in range(clinic.kb.n_names)]
    row = names.index("navel")  # a name is encoded by the other tower
    query, name = (
        trained.encode(["navel"], prompt_name=side, precision="fp32")[0]
        for side in ("query", "document")
    )
    score = float(index.score(["navel"], np.array([[row]]))[0, 0])
    assert score == pytest.approx(float(query @ name), abs=1e-3)
    assert score < 1 - 1e-4
