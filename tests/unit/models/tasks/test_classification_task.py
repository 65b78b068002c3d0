"""Matching, inference and classification: training on toy sets, losses, metrics, chance."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, f1_score

from biograft.errors import ConfigError
from biograft.models.tasks import (
    ClassificationConfig,
    ClassificationModel,
    InferenceConfig,
    InferenceModel,
    MatchingConfig,
    MatchingModel,
    classification_report,
)
from biograft.text import ClassExample, PairExample
from biograft.training.tasks import fit

HERE, THERE = ("aspirin", "he", "took", "helps"), ("lung", "heart", "cancer", "pain")
FRAMES = ("{}", "no {} today", "a {} was examples")


def pairs(frames):
    """Pairs that match where both texts hold one of the first words: no text says it alone."""
    examples = []
    for frame, first, second in product(frames, HERE + THERE, HERE + THERE):
        match = first in HERE and second in HERE
        examples.append(PairExample(frame.format(first), f"after {second}", str(int(match))))
    return examples


def texts(several):
    """Texts of two words, of which each may mean a class; or of the class of the second."""
    examples = []
    for first, second in product(HERE, ("fever", "cold", "nothing")):
        both = (("drug", first in HERE[:2]), (second, second != "nothing"))
        labels = tuple(label for label, holds in both if holds) if several else (second,)
        examples.append(ClassExample(f"{first} {second}", labels, multi=several))
    return examples


def test_pairs_are_matched_in_frames_never_seen(load, training, tmp_path):
    torch.manual_seed(1)
    train, dev = pairs(FRAMES[:2]), pairs(FRAMES[2:])
    config = MatchingConfig(training=training(epochs=12, batch_size=16))
    model = MatchingModel.from_examples(load(), config, train)
    assert (model.labels, model.counted) == (("0", "1"), ("1",))
    fitted = fit(model, train, dev, tmp_path / "run", seed=1)
    assert fitted.report.micro.f1 > 0.9
    assert fitted.report.chance == {"accuracy": 0.75, "labels": ["0"], "f1": pytest.approx(0.4)}
    best = fitted.epochs[fitted.best_epoch - 1]
    assert best["f1"] == max(epoch["f1"] for epoch in fitted.epochs) == fitted.report.micro.f1


@pytest.mark.parametrize("several", [True, False])
def test_classes_of_texts(several, load, training, tmp_path):
    torch.manual_seed(1)
    examples = texts(several)
    config = ClassificationConfig(training=training(epochs=60))
    model = ClassificationModel.from_examples(load(), config, examples)
    assert model.config.several is several
    fitted = fit(model, examples, examples, tmp_path / "run", seed=1)
    assert fitted.report.micro.f1 > 0.8
    assert fitted.report.chance["f1"] < 0.6
    predictions = model.predict(examples)
    for example, answer in zip(examples, predictions, strict=True):
        assert set(answer.labels) <= set(model.labels)
        assert len(answer.labels) == len(answer.probabilities)
        assert several or len(answer.labels) == 1
        assert all(p > 0.5 for p in answer.probabilities) or not several
        assert example.multi is several


def test_predictions_do_not_depend_on_padding(load):
    torch.manual_seed(0)
    examples = [ClassExample("no fever", ("0",)), ClassExample("cold " * 25, ("1",), "a lung")]
    model = ClassificationModel.from_examples(load(), ClassificationConfig(), examples)
    together = model.predict(examples, "fp32")
    alone = [answer for example in examples for answer in model.predict([example], "fp32")]
    for a, b in zip(together, alone, strict=True):
        assert a.labels == b.labels
        assert a.probabilities == pytest.approx(b.probabilities, abs=1e-6)


@pytest.mark.parametrize("several", [True, False])
def test_the_loss_against_a_plain_loop(several, load):
    torch.manual_seed(0)
    examples = texts(several)[:7]
    model = ClassificationModel.from_examples(
        load(), ClassificationConfig(dropout=0.0), texts(several)
    )
    items, lost = model.training_items(examples)
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
        kind.from_examples(load(), config, examples)


NAMES = ("a", "b", "c")


def f1(right, wrong, missed):
    return 2 * right / (2 * right + wrong + missed) if right else 0.0


@pytest.mark.parametrize("seed", range(2))
def test_single_classes_are_counted_as_sklearn_counts(seed):
    rng = np.random.default_rng(seed)
    gold, predicted = (rng.choice(NAMES, 40).tolist() for _ in range(2))
    report = classification_report([(x,) for x in gold], [(x,) for x in predicted])
    assert report.accuracy == pytest.approx(accuracy_score(gold, predicted))
    assert report.micro.f1 == pytest.approx(report.accuracy)
    assert report.macro_f1 == pytest.approx(f1_score(gold, predicted, average="macro"))
    positive = classification_report([(x,) for x in gold], [(x,) for x in predicted], ["b"])
    by_class = dict(zip(NAMES, f1_score(gold, predicted, average=None), strict=True))
    assert positive.micro.f1 == pytest.approx(by_class["b"])
    assert positive.macro_f1 == pytest.approx(report.macro_f1)
    metrics = positive.to_json()
    assert metrics["f1"] == pytest.approx(by_class["b"])
    assert {name: c["f1"] for name, c in metrics["classes"].items()} == pytest.approx(by_class)


@pytest.mark.parametrize("seed", range(2))
def test_several_classes_against_plain_loops(seed):
    rng = np.random.default_rng(seed)
    gold, predicted = (
        [tuple(name for name in NAMES if rng.random() < 0.4) for _ in range(30)] for _ in range(2)
    )
    right = wrong = missed = whole = 0
    for expected, given in zip(gold, predicted, strict=True):
        for name in NAMES:
            right += name in expected and name in given
            wrong += name not in expected and name in given
            missed += name in expected and name not in given
        whole += expected == given
    metrics = classification_report(gold, predicted).to_json()
    assert (metrics["right"], metrics["wrong"], metrics["missed"]) == (right, wrong, missed)
    assert metrics["f1"] == pytest.approx(f1(right, wrong, missed))
    assert metrics["accuracy"] == pytest.approx(whole / 30)


@pytest.mark.parametrize("counted", [(), ("b",)])
@pytest.mark.parametrize("several", [True, False])
def test_chance_is_the_best_constant_prediction(counted, several):
    rng = np.random.default_rng(3)
    n = 3 if several else 1
    gold = [tuple(sorted({*rng.choice(NAMES, n, p=(0.2, 0.2, 0.6))})) for _ in range(50)]
    constant = [classification_report(gold, [answer] * 50, counted) for answer in set(gold)]
    chance = classification_report(gold, gold, counted).chance
    assert chance["accuracy"] == pytest.approx(max(report.accuracy for report in constant))
    assert chance["f1"] == pytest.approx(max(report.micro.f1 for report in constant))
    assert gold.count(tuple(chance["labels"])) == max(map(gold.count, gold))
