"""Reports by class: against plain loops, and as the field counts."""

from __future__ import annotations

import random

import pytest

from biograft.corpus.formats.tokenised import decode
from biograft.errors import ConfigError
from biograft.metrics import Counts, entity_report, label_report


def test_entities_are_right_by_span_and_type():
    gold = [(0, 1, 3, "X"), (0, 5, 6, "Y"), (1, 1, 3, "X")]
    answers = [(0, 1, 3, "X"), (0, 5, 6, "X"), (0, 5, 6, "X"), (1, 1, 4, "X")]
    report = entity_report(gold, answers)
    assert report.classes == {"X": Counts(1, 2, 1), "Y": Counts(0, 0, 1)}
    assert report.micro == Counts(1, 2, 2)
    assert report.macro_f1 == pytest.approx((0.4 + 0) / 2)


def test_entities_of_tags_equal_a_plain_loop():
    """The loop reads tags as seqeval does: I- after O or after another type begins an entity."""
    draw, tags = random.Random(0), ["O", "B-X", "I-X", "B-Y", "I-Y"]
    for _ in range(200):
        gold, given = ([draw.choice(tags) for _ in range(12)] for _ in range(2))
        right, n_gold, n_given = 0, len(plain(gold)), len(plain(given))
        for entity in plain(given):
            right += entity in plain(gold)
        report = entity_report(*([(0, *e) for e in decode(seen)] for seen in (gold, given)))
        assert report.micro == Counts(right, n_given - right, n_gold - right)


def plain(tags):
    found, start, kind = [], None, None
    for place, tag in enumerate([*tags, "O"]):
        begins = tag[0] == "B" or (tag[0] == "I" and (start is None or tag[2:] != kind))
        if start is not None and (begins or tag == "O"):
            found.append((start, place, kind))
            start = None
        if begins:
            start, kind = place, tag[2:]
    return found


def test_labels_count_positive_classes_only():
    gold = ["false", "false", "effect", "effect", "int", "false"]
    answers = ["false", "effect", "effect", "false", "effect", "false"]
    report = label_report(gold, answers, ["effect", "int"])
    assert report.classes == {"effect": Counts(1, 2, 1), "int": Counts(0, 0, 1)}
    assert report.micro.f1 == pytest.approx(2 / (2 + 2 + 2))


def test_labels_equal_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    draw, labels = random.Random(1), ["no", "a", "b", "c"]
    gold, answers = ([draw.choice(labels) for _ in range(300)] for _ in range(2))
    report = label_report(gold, answers, ["a", "b", "c"])
    expected = [metrics.f1_score(gold, answers, labels=["a", "b", "c"], average=way)
                for way in ("micro", "macro")]  # fmt: skip
    assert [report.micro.f1, report.macro_f1] == pytest.approx(expected)
    assert report.to_json()["classes"]["a"]["right"] == sum(
        one == other == "a" for one, other in zip(gold, answers, strict=True)
    )


def test_answers_must_fit_the_examples():
    with pytest.raises(ConfigError, match="1 answers to 2 examples"):
        label_report(["a", "b"], ["a"], ["a"])


def test_a_report_of_nothing_is_zero():
    report = entity_report([], [])
    assert (report.micro.f1, report.macro_f1, report.to_json()["classes"]) == (0, 0, {})
