"""Fixtures for tests of the command line."""

from __future__ import annotations

import pytest


@pytest.fixture
def word_detector(tmp_path):
    """A model of named entity recognition to which every word is a mention."""
    import torch
    from tiny_models import tiny_encoder_folder

    from biograft.models import TextEncoder
    from biograft.models.tasks import NerConfig, NerModel, write_model

    folder = tiny_encoder_folder(tmp_path / "tiny", ["a b"], hidden=16, layers=1)
    model = NerModel(TextEncoder.from_pretrained(folder), NerConfig(overlap=4), ("Disease",))
    last = model.network.model.classifier
    last.weight.data.zero_()
    last.bias.data.copy_(torch.tensor([0.0, 1.0, 0.0]))  # O, B, I
    write_model(tmp_path / "DETECTOR", model, {})
    return tmp_path / "DETECTOR"
