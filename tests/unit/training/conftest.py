"""A small task with dropout: points and their classes, in batches that can be taken up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from biograft.training import Task

Points = list[tuple[np.ndarray, int]]


class PointSource:
    """37 points in batches of 8, the last one smaller."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.points = [(rng.normal(size=6), int(k % 3)) for k in range(37)]

    def __len__(self) -> int:
        return 5

    def batches(self, epoch: int, position: int = 0) -> Iterator[Points]:
        order = np.random.default_rng([7, epoch]).permutation(37)
        for start in range(8 * position, 37, 8):
            yield [self.points[k] for k in order[start : start + 8]]


def compute_loss(model: nn.Module, batch: Points) -> tuple[Tensor, dict[str, float]]:
    features = torch.tensor(np.stack([point for point, _ in batch]), dtype=torch.float32)
    classes = torch.tensor([label for _, label in batch])
    scores = model(features).float()
    right = (scores.argmax(1) == classes).float().mean()
    return nn.functional.cross_entropy(scores, classes), {"accuracy": float(right)}


@pytest.fixture
def make_task() -> Callable[..., Task[Any]]:
    """Make the task anew, always from the same weights: ``make_task(described={...})``."""

    def make(**parts: Any) -> Task[Any]:
        torch.manual_seed(1)
        model = nn.Sequential(
            nn.Linear(6, 16), nn.LayerNorm(16), nn.Dropout(0.3), nn.GELU(), nn.Linear(16, 3)
        )
        parts = {"model": model, "source": PointSource(), "compute_loss": compute_loss, **parts}
        return Task(**parts)

    return make
