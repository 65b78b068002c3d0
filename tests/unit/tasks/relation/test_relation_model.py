"""Relation extraction as a whole: learnt by heart, counted as BLURB does, written down."""

from __future__ import annotations

import json

import pytest
import torch

from biograft.errors import ConfigError
from biograft.tasks.configs import RelationConfig
from biograft.tasks.relation import RelationAnswer, RelationModel
from biograft.tasks.training import fit


@pytest.fixture
def start(load, relations, training):
    """Make a model that has learnt nothing: ``start(epochs=3)``."""

    def make(seed=1, **values):
        torch.manual_seed(seed)
        config = RelationConfig(training=training(**values))
        return RelationModel.start(load(), config, relations)

    return make


def test_relations_are_learnt_by_the_words_between(start, relations, tmp_path):
    model = start(epochs=30)
    assert (model.labels, model.positive) == (("false", "effect"), ("effect",))
    fitted = fit(model, relations, relations, tmp_path / "run", seed=1)
    assert fitted.report.micro.f1 == 1.0
    assert [answer.label for answer in model.predict(relations)] == [e.label for e in relations]


def test_new_rows_follow_from_the_seed_and_old_ones_stay(start, load):
    def table(model):
        return model.network.model.get_input_embeddings().weight.detach()

    old = load().model.get_input_embeddings().weight
    first, again, other = table(start(1)), table(start(1)), table(start(2))
    n_old = len(old)
    assert len(first) == n_old + 2
    assert torch.equal(first[:n_old], old)
    assert torch.equal(first, again)
    assert not torch.equal(first[n_old:], other[n_old:])


def test_positive_classes_count(start, relations):
    model = start()
    examples = relations[:4]  # effect, false, effect, false
    answers = [RelationAnswer(label, 1.0) for label in ("effect", "effect", "false", "false")]
    report = model.report(examples, answers)
    assert list(report.classes) == ["effect"]
    assert (report.micro.right, report.micro.wrong, report.micro.missed) == (1, 1, 1)


def test_answers_are_lines_that_name_their_example(start, relations, tmp_path):
    model = start()
    answers = model.predict(relations[:2])
    model.write(relations[:2], answers, tmp_path / "answers.jsonl")
    first = json.loads((tmp_path / "answers.jsonl").read_text().splitlines()[0])
    assert (first["id"], first["gold"]) == (relations[0].id, "effect")
    assert first["label"] == answers[0].label
    assert 0.5 <= first["probability"] <= 1


def test_one_label_is_nothing_to_tell_apart(load, relations):
    with pytest.raises(ConfigError, match="at least 2 labels"):
        RelationModel.start(load(), RelationConfig(), relations[:1])
