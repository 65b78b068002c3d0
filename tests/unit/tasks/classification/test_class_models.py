"""Matching, inference, classification: learned from toy sets, answered alike in any batch."""

from __future__ import annotations

import json
from itertools import product

import pytest
import torch

from biograft.corpus.tasks.records import ClassExample, PairExample
from biograft.errors import ConfigError
from biograft.tasks.classification import (
    ClassAnswer,
    ClassificationModel,
    InferenceModel,
    MatchingModel,
)
from biograft.tasks.configs import ClassificationConfig, InferenceConfig, MatchingConfig
from biograft.tasks.training import fit

HERE, THERE = ("aspirin", "he", "took", "helps"), ("lung", "heart", "cancer", "pain")
FRAMES = ("{}", "no {} today", "a {} was found")


def pairs(frames):
    """Pairs that match where both texts hold one of the first words: no text says it alone."""
    found = []
    for frame, first, second in product(frames, HERE + THERE, HERE + THERE):
        match = first in HERE and second in HERE
        found.append(PairExample(frame.format(first), f"after {second}", str(int(match))))
    return found


def texts(several):
    """Texts of two words, of which each may mean a class; or of the class of the second."""
    found = []
    for first, second in product(HERE, ("fever", "cold", "nothing")):
        both = (("drug", first in HERE[:2]), (second, second != "nothing"))
        labels = tuple(label for label, holds in both if holds) if several else (second,)
        found.append(ClassExample(f"{first} {second}", labels, multi=several))
    return found


def test_pairs_are_matched_in_frames_never_seen(load, training, tmp_path):
    torch.manual_seed(1)
    train, dev = pairs(FRAMES[:2]), pairs(FRAMES[2:])
    config = MatchingConfig(training=training(epochs=12, batch_size=16))
    model = MatchingModel.start(load(), config, train)
    assert (model.labels, model.counted) == (("0", "1"), ("1",))
    fitted = fit(model, train, dev, tmp_path / "run", seed=1)
    assert fitted.report.micro.f1 > 0.9
    assert fitted.report.chance == {"accuracy": 0.75, "answer": ["0"], "f1": pytest.approx(0.4)}
    best = fitted.epochs[fitted.best_epoch - 1]
    assert best["f1"] == max(epoch["f1"] for epoch in fitted.epochs) == fitted.report.micro.f1


def test_three_classes_of_pairs(load, training, tmp_path):
    torch.manual_seed(1)
    kinds = {"aspirin": "entailment", "fever": "neutral", "cancer": "contradiction"}
    examples = [
        PairExample(f"{other} took", f"{word} today", label)
        for word, label in kinds.items()
        for other in HERE
    ]
    config = InferenceConfig(training=training(epochs=30))
    model = InferenceModel.start(load(), config, examples)
    assert model.labels == ("contradiction", "entailment", "neutral")
    fitted = fit(model, examples, examples, tmp_path / "run", seed=1)
    assert fitted.report.accuracy == 1.0
    assert [answer.label for answer in model.predict(examples)] == [e.label for e in examples]


@pytest.mark.parametrize("several", [True, False])
def test_classes_of_texts(several, load, training, tmp_path):
    torch.manual_seed(1)
    examples = texts(several)
    config = ClassificationConfig(training=training(epochs=60))
    model = ClassificationModel.start(load(), config, examples)
    assert model.config.several is several
    fitted = fit(model, examples, examples, tmp_path / "run", seed=1)
    assert fitted.report.micro.f1 > 0.9
    assert fitted.report.chance["f1"] < 0.6
    answers = model.predict(examples)
    for example, answer in zip(examples, answers, strict=True):
        assert set(answer.labels) <= set(model.labels)
        assert len(answer.labels) == len(answer.probabilities)
        assert several or len(answer.labels) == 1
        assert all(p > 0.5 for p in answer.probabilities) or not several
        assert example.multi is several


def test_an_answer_is_the_same_alone_and_among_longer_texts(load):
    torch.manual_seed(0)
    examples = [ClassExample("no fever", ("0",)), ClassExample("cold " * 25, ("1",), "a lung")]
    model = ClassificationModel.start(load(), ClassificationConfig(), examples)
    together = model.predict(examples, "fp32")
    alone = [answer for example in examples for answer in model.predict([example], "fp32")]
    for a, b in zip(together, alone, strict=True):
        assert a.labels == b.labels
        assert a.probabilities == pytest.approx(b.probabilities, abs=1e-6)


def test_scores_are_a_linear_layer_on_the_opening_token(load):
    torch.manual_seed(0)
    encoder = load()
    examples = [PairExample("no fever", "a cold", "0"), PairExample("lung", "heart pain", "1")]
    model = MatchingModel.start(encoder, MatchingConfig(), examples)
    linear = model.network.head.linear
    answers = model.predict(examples, "fp32")
    encoder.model.eval()
    for example, answer in zip(examples, answers, strict=True):
        asked = {"return_tensors": "pt", "return_token_type_ids": True}
        inputs = encoder.tokenizer(example.first, example.second, **asked)
        with torch.no_grad():
            state = encoder.model(**inputs).last_hidden_state[0, 0]
            expected = linear(state).softmax(0).max()
        assert answer.probabilities[0] == pytest.approx(float(expected), abs=1e-6)


@pytest.mark.parametrize("several", [True, False])
def test_the_loss_against_a_plain_loop(several, load):
    torch.manual_seed(0)
    examples = texts(several)[:7]
    model = ClassificationModel.start(load(), ClassificationConfig(dropout=0.0), texts(several))
    items, lost = model.learnable(examples)
    model.network.eval()
    with torch.no_grad():
        loss, stats = model.loss(model.network, items)
        (scores,) = model.network(model.network.collate(items))
    each = []
    for example, row in zip(examples, scores, strict=True):
        if several:
            for label, score in zip(model.labels, row, strict=True):
                p = torch.sigmoid(score)
                each.append(-torch.log(p if label in example.labels else 1 - p))
        else:
            each.append(-torch.log(row.softmax(0)[model.labels.index(example.labels[0])]))
    assert float(loss) == pytest.approx(float(sum(each) / len(each)), rel=1e-5)
    assert (stats, lost) == ({}, {})


def test_answers_are_lines_in_the_order_of_examples(load, tmp_path):
    examples = pairs(FRAMES[:1])[:3]
    model = MatchingModel.start(load(), MatchingConfig(), pairs(FRAMES[:1]))
    model.write(examples, [ClassAnswer(("1",), (0.75,))] * 3, tmp_path / "answers.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    assert lines[0] == {"row": 0, "id": "", "gold": ["1"], "labels": ["1"], "probabilities": [0.75]}
    assert [line["row"] for line in lines] == [0, 1, 2]


def test_a_class_that_was_never_learned_is_missed(load):
    model = InferenceModel.start(load(), InferenceConfig(), pairs(FRAMES[:1]))
    examples = [PairExample("lung", "heart", "2")]
    report = model.report(examples, [ClassAnswer(("1",), (1.0,))])
    assert report.classes.classes["2"].missed == 1


@pytest.mark.parametrize(
    ("kind", "config", "labels", "message"),
    [
        (MatchingModel, MatchingConfig(), "0", "matching: expected at least 2 labels, found"),
        (MatchingModel, MatchingConfig(), "012", "matching: expected 2 labels, one of them"),
        (
            MatchingModel,
            MatchingConfig(positive="yes"),
            "01",
            "config.positive = 'yes', found 0, 1",
        ),
        (InferenceModel, InferenceConfig(), "a", "inference: expected at least 2 labels"),
    ],
)
def test_labels_that_do_not_fit_are_refused(kind, config, labels, message, load):
    examples = [PairExample("lung", "heart", label) for label in labels]
    with pytest.raises(ConfigError, match=message):
        kind.start(load(), config, examples)
