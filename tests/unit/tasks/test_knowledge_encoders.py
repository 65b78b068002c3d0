"""Tasks on an encoder with a knowledge layer: trained, kept, opened as any other."""

from __future__ import annotations

import shutil

import pytest
import torch

from biograft.nn import TextEncoder
from biograft.nn.knowledge import KnowledgeBertConfig, KnowledgeBertModel
from biograft.tasks.finetuning import fit
from biograft.tasks.folder import open_task, write_model
from biograft.tasks.ner import NerConfig, NerModel
from biograft.tasks.relation import RelationConfig, RelationModel


@pytest.fixture
def knowing(encoder_folder, tmp_path):
    """An encoder with a table of seven entities after its first layer."""
    plain = TextEncoder.from_pretrained(encoder_folder, max_length=32)
    known = plain.model.config.to_dict()
    del known["model_type"]
    config = KnowledgeBertConfig(
        **known, knowledge_after=1, n_entities=7, entity_dim=8, n_nearest=3
    )
    torch.manual_seed(0)
    folder = tmp_path / "knowing"
    shutil.copytree(encoder_folder, folder)
    KnowledgeBertModel(config).save_pretrained(folder)
    return TextEncoder.from_pretrained(folder, max_length=32)


def test_entities(knowing, documents, training, tmp_path):
    config = NerConfig(types="keep", overlap=4, training=training(epochs=30))
    model = NerModel.start(knowing, config, documents)
    fitted = fit(model, documents, documents, tmp_path / "run", seed=1)
    assert fitted.report.micro.f1 == 1.0
    write_model(tmp_path / "model", model, {})
    opened = open_task(tmp_path / "model")
    assert isinstance(opened.network.model, KnowledgeBertModel)
    assert opened.predict(documents) == model.predict(documents)


def test_relations(knowing, relations, training, tmp_path):
    model = RelationModel.start(knowing, RelationConfig(training=training(epochs=30)), relations)
    fitted = fit(model, relations, relations, tmp_path / "run", seed=1)
    assert fitted.report.micro.f1 == 1.0
    write_model(tmp_path / "model", model, {})
    assert open_task(tmp_path / "model").predict(relations) == model.predict(relations)
