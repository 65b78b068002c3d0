"""The configuration, the learning rate and which parameters decay."""

from __future__ import annotations

import math

import pytest
from torch import nn

from biograft.errors import ConfigError
from biograft.training import TrainingConfig, learning_rate, make_optimiser


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("constant", [0.5, 1, 1, 1, 1, 1, 1, 1, 1, 1]),
        ("linear", [0.5, 1, 1, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8]),
        ("cosine", [0.5, 1, *((1 + math.cos(math.pi * k / 8)) / 2 for k in range(8))]),
    ],
)
def test_learning_rates(schedule, expected):
    for warmup in ({"warmup_ratio": 0.2}, {"warmup_ratio": 0.9, "warmup_steps": 2}):
        config = TrainingConfig(learning_rate=3.0, schedule=schedule, **warmup)
        rates = [learning_rate(step, 10, config) for step in range(10)]
        assert rates == pytest.approx([3 * rate for rate in expected])


def test_a_warmup_longer_than_the_training_is_refused():
    config = TrainingConfig(warmup_steps=11)
    with pytest.raises(ConfigError, match="warmup_steps: expected at most the 10 steps"):
        learning_rate(0, 10, config)


@pytest.mark.parametrize(
    ("batch", "limit", "n_processes", "plan"),
    [
        (512, 0, 1, (1, 1, 512)),
        (512, 32, 1, (1, 16, 32)),
        (512, 32, 8, (8, 2, 32)),
        (512, 32, 16, (16, 1, 32)),
        (512, 32, 64, (64, 1, 8)),
        (24, 5, 1, (1, 6, 4)),  # passes are equal, so 5 of 24 cannot be
        (384, 16, 6, (6, 4, 16)),
        (7, 2, 1, (1, 7, 1)),
    ],
)
def test_the_batch_of_an_update_is_that_of_all_processes(batch, limit, n_processes, plan):
    config = TrainingConfig(batch_size=batch, device_batch_size=limit)
    found = config.plan_batch(n_processes)
    assert (found.n_processes, found.accumulate, found.size) == plan


def test_a_batch_that_the_processes_cannot_share_is_refused():
    with pytest.raises(ConfigError, match="batch_size: expected a multiple of the 3 processes"):
        TrainingConfig(batch_size=64).plan_batch(3)


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
