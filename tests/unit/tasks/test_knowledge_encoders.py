"""Tasks on an encoder with a knowledge layer: trained, kept, opened as any other."""

from __future__ import annotations

import shutil

import pytest
import torch

from biograft.corpus.tasks.records import Answer, PairExample, RankingExample
from biograft.nn import TextEncoder
from biograft.nn.knowledge import KnowledgeBertConfig, KnowledgeBertModel
from biograft.tasks.classification import InferenceConfig, InferenceModel
from biograft.tasks.finetuning import fit
from biograft.tasks.folder import open_task, write_model
from biograft.tasks.ner import NerConfig, NerModel
from biograft.tasks.ranking import RankingConfig, RankingModel
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


WORDS = ("aspirin", "fever", "lung")


def test_pairs(knowing, training, tmp_path):
    pairs = [PairExample(word, f"no {other}", other) for word in WORDS for other in WORDS]
    model = InferenceModel.start(knowing, InferenceConfig(training=training(epochs=30)), pairs)
    fitted = fit(model, pairs, pairs, tmp_path / "run", seed=1)
    assert fitted.report.accuracy == 1.0
    write_model(tmp_path / "model", model, {})
    assert open_task(tmp_path / "model").predict(pairs) == model.predict(pairs)


def test_answers(knowing, training, tmp_path):
    candidates = tuple(Answer(word, int(word == "lung")) for word in WORDS)
    questions = [RankingExample(f"no {word}", candidates) for word in WORDS]
    config = RankingConfig(negatives=2, training=training(epochs=30))
    model = RankingModel.start(knowing, config, questions)
    fitted = fit(model, questions, questions, tmp_path / "run", seed=1)
    assert fitted.report.accuracy == 1.0
    write_model(tmp_path / "model", model, {})
    assert open_task(tmp_path / "model").predict(questions) == model.predict(questions)
