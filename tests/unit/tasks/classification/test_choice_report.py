"""Figures of classes against plain loops, and what chance is said to reach."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score

from biograft.errors import ConfigError
from biograft.tasks.classification import choice_report

NAMES = ("a", "b", "c")


def f1(right, wrong, missed):
    return 2 * right / (2 * right + wrong + missed) if right else 0.0


@pytest.mark.parametrize("seed", range(5))
def test_single_classes_are_counted_as_sklearn_counts(seed):
    draw = np.random.default_rng(seed)
    gold, said = (draw.choice(NAMES, 40).tolist() for _ in range(2))
    report = choice_report([(x,) for x in gold], [(x,) for x in said])
    assert report.accuracy == pytest.approx(accuracy_score(gold, said))
    assert report.micro.f1 == pytest.approx(report.accuracy)
    assert report.macro_f1 == pytest.approx(f1_score(gold, said, average="macro"))
    positive = choice_report([(x,) for x in gold], [(x,) for x in said], ["b"])
    by_class = dict(zip(NAMES, f1_score(gold, said, average=None), strict=True))
    assert positive.micro.f1 == pytest.approx(by_class["b"])
    assert positive.macro_f1 == pytest.approx(report.macro_f1)
    told = positive.to_json()
    assert told["f1"] == pytest.approx(by_class["b"])
    assert {name: c["f1"] for name, c in told["classes"].items()} == pytest.approx(by_class)


@pytest.mark.parametrize("seed", range(5))
def test_several_classes_against_plain_loops(seed):
    draw = np.random.default_rng(seed)
    gold, said = (
        [tuple(name for name in NAMES if draw.random() < 0.4) for _ in range(30)] for _ in range(2)
    )
    right = wrong = missed = whole = 0
    for expected, given in zip(gold, said, strict=True):
        for name in NAMES:
            right += name in expected and name in given
            wrong += name not in expected and name in given
            missed += name in expected and name not in given
        whole += expected == given
    told = choice_report(gold, said).to_json()
    assert (told["right"], told["wrong"], told["missed"]) == (right, wrong, missed)
    assert told["f1"] == pytest.approx(f1(right, wrong, missed))
    assert told["accuracy"] == pytest.approx(whole / 30)


@pytest.mark.parametrize("counted", [(), ("b",)])
@pytest.mark.parametrize("several", [True, False])
def test_chance_is_the_best_that_one_answer_to_all_reaches(counted, several):
    draw = np.random.default_rng(3)
    n = 3 if several else 1
    gold = [tuple(sorted({*draw.choice(NAMES, n, p=(0.2, 0.2, 0.6))})) for _ in range(50)]
    constant = [choice_report(gold, [answer] * 50, counted) for answer in set(gold)]
    chance = choice_report(gold, gold, counted).chance
    assert chance["accuracy"] == pytest.approx(max(report.accuracy for report in constant))
    assert chance["f1"] == pytest.approx(max(report.micro.f1 for report in constant))
    assert gold.count(tuple(chance["answer"])) == max(map(gold.count, gold))


def test_a_class_that_is_never_said_counts_nothing_right():
    told = choice_report([("0",), ("0",)], [("0",), ("0",)], ["1"]).to_json()
    assert (told["f1"], told["accuracy"], told["macro_f1"]) == (0.0, 1.0, 1.0)
    assert told["chance"]["f1"] == 0.0


def test_every_example_needs_its_answer():
    with pytest.raises(ConfigError, match="1 answers to 2 examples"):
        choice_report([("a",), ("b",)], [("a",)])
