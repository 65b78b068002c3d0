"""Small models with a knowledge layer."""

import pytest
import torch

from biograft.nn.knowledge import KnowledgeBertConfig, KnowledgeBertForMaskedLM

SMALL = {
    "vocab_size": 60,
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 40,
    "knowledge_after": 2,
    "n_entities": 30,
    "entity_dim": 6,
    "n_nearest": 5,
}


@pytest.fixture
def small_model():
    """Make a model: ``small_model(fusion_norm=True)``; large random weights, in 64 bits."""

    def make(seed=0, **settings):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = KnowledgeBertForMaskedLM(KnowledgeBertConfig(**(SMALL | settings)))
            for name, weight in model.named_parameters():
                if "norm" not in name.lower():
                    torch.nn.init.normal_(weight, std=0.3)
        return model.double().eval()

    return make
