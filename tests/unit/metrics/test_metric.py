"""Metrics as values: their text form, what is refused, their range."""

from __future__ import annotations

import numpy as np
import pytest

from biograft.errors import ConfigError
from biograft.metrics import METRICS, Judgements, Metric

TEXTS = [f"{name}@7" if METRICS.load(name).has_cutoff else name for name in METRICS]


@pytest.mark.parametrize("text", TEXTS)
def test_the_text_form_parses_back(text):
    assert str(Metric.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("accuracy@1", "no metric is called 'accuracy'"),
        ("acc", "expected the form acc@k"),
        ("mrr@5", "expected the form mrr"),
        ("acc@²", "a number from 1"),
    ],
)
def test_an_invalid_metric_is_refused(text, message):
    with pytest.raises(ConfigError, match=message):
        Metric.parse(text)


def test_more_ranks_than_were_judged_are_refused():
    with pytest.raises(ConfigError, match="only 2 ranks"):
        Metric.parse("acc@3")(random_judgements(np.random.default_rng(0), 3, 2))


def random_judgements(rng, n, depth):
    """Random judgements: right answers stay right as more count."""
    right = np.sort(rng.random((n, depth)).round(1), axis=1)
    return Judgements(
        right,
        np.maximum(right, 0.5),
        rng.random(n) < 0.3,
        rng.random(n) < 0.3,
        rng.random(n).round(1),
        tuple(f"d{k % 3}" for k in range(n)),
    )


def test_the_judgements_of_some_queries():
    judgements = random_judgements(np.random.default_rng(1), 6, 3)
    some = judgements.take(np.arange(6) >= 2)
    assert some.right.tolist() == judgements.right[2:].tolist()
    assert some.nil.tolist() == judgements.nil[2:].tolist()
    assert some.documents == judgements.documents[2:]
