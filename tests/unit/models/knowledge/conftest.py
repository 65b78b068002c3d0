"""Small models with an entity memory."""

import pytest
import torch

from biograft.models import KnowledgeBertConfig, KnowledgeBertForMaskedLM

SMALL = {
    "vocab_size": 60,
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 40,
    "n_entities": 30,
    "entity_dim": 6,
}


@pytest.fixture
def small_model():
    """Make a model with large random float64 weights: ``small_model({"fusion_norm": True})``."""

    def make(memory=None, *, seed=0, **settings):
        layers = {"entity_memory": {"after": 2, "n_nearest": 5} | (memory or {})}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            config = KnowledgeBertConfig(**(SMALL | settings), knowledge_layers=layers)
            model = KnowledgeBertForMaskedLM(config)
            for name, weight in model.named_parameters():
                if "norm" not in name.lower():
                    torch.nn.init.normal_(weight, std=0.3)
        return model.double().eval()

    return make
