"""The configuration, the learning rate and which parameters decay."""

from __future__ import annotations

import math

import pytest
from torch import nn

from biograft.config import from_mapping
from biograft.errors import ConfigError
from biograft.training import TrainingConfig
from biograft.training.loop import count_steps, learning_rate, make_optimiser


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"steps": -1}, "steps: expected at least 0, found -1"),
        ({"epochs": 0}, "epochs: expected at least 1, found 0"),
        ({"batch_size": 0}, "batch_size: expected at least 1"),
        ({"accumulate": 0}, "accumulate: expected at least 1"),
        ({"learning_rate": 0.0}, "learning_rate: expected a number above 0"),
        ({"learning_rate": math.nan}, "learning_rate: expected a number above 0"),
        ({"clip": math.inf}, "clip: expected at least 0"),
        ({"warmup": 1.5}, "warmup: expected a number from 0 to 1, found 1.5"),
        ({"schedule": "cos"}, "schedule: expected one of constant, linear, cosine, found 'cos'"),
        ({"precision": "fp16"}, "precision: expected one of auto, bf16, fp32, found 'fp16'"),
        ({"lr": 1.0}, "unknown key 'lr'"),
    ],
)
def test_a_wrong_configuration_is_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        from_mapping(TrainingConfig, values)


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("constant", [0.5, 1, 1, 1, 1, 1, 1, 1, 1, 1]),
        ("linear", [0.5, 1, 1, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8]),
        ("cosine", [0.5, 1, *((1 + math.cos(math.pi * k / 8)) / 2 for k in range(8))]),
    ],
)
def test_learning_rates(schedule, expected):
    config = TrainingConfig(learning_rate=3.0, warmup=0.2, schedule=schedule)
    rates = [learning_rate(step, 10, config) for step in range(10)]
    assert rates == pytest.approx([3 * rate for rate in expected])


def test_weight_decay_excludes_vectors_by_default():
    model = nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3))
    model[0].weight.requires_grad_(False)

    def decayed(**options):
        groups = make_optimiser(model, TrainingConfig(weight_decay=0.1, **options)).param_groups
        return [(group["weight_decay"], len(group["params"])) for group in groups]

    assert decayed() == [(0.0, 3)]
    assert decayed(decay_all=True) == [(0.1, 3)]
    model[0].weight.requires_grad_(True)
    assert decayed() == [(0.1, 1), (0.0, 3)]


@pytest.mark.parametrize(
    ("options", "n_steps"),
    [({"steps": 7}, 7), ({"epochs": 2}, 10), ({"epochs": 2, "accumulate": 4}, 3)],
)
def test_the_number_of_steps(options, n_steps):
    assert count_steps(TrainingConfig(**options), 5) == n_steps
