"""The optimiser, and the learning rate as a function of the step alone."""

from __future__ import annotations

import math

import torch
from torch import nn

from biograft.training.config import TrainingConfig


def make_optimiser(model: nn.Module, config: TrainingConfig) -> torch.optim.AdamW:
    """Make AdamW over the parameters that learn, with or without decay on vectors."""
    learning = [p for p in model.parameters() if p.requires_grad]
    decayed = [p for p in learning if config.decay_all or p.ndim > 1]
    spared = [p for p in learning if not config.decay_all and p.ndim <= 1]
    groups = [
        {"params": decayed, "weight_decay": config.weight_decay},
        {"params": spared, "weight_decay": 0.0},
    ]
    learning_groups = [group for group in groups if group["params"]]
    # one pass over the weights; step by step it takes eight times as long on a CPU
    return torch.optim.AdamW(learning_groups, lr=config.learning_rate, fused=True)


def learning_rate(step: int, n_steps: int, config: TrainingConfig) -> float:
    """Give the rate of an update, counted from 0; a resumed run needs no other state."""
    n_warm = round(config.warmup * n_steps)
    if step < n_warm:
        return config.learning_rate * (step + 1) / n_warm
    done = (step - n_warm) / max(n_steps - n_warm, 1)
    shape = {
        "constant": 1.0,
        "linear": 1 - done,
        "cosine": (1 + math.cos(math.pi * done)) / 2,
    }
    return config.learning_rate * shape[config.schedule]
