"""Which processes train together: those that ``torchrun`` started, or this one alone."""

from __future__ import annotations

import torch
from accelerate import Accelerator, DistributedDataParallelKwargs, PartialState


def join_processes() -> PartialState:
    """Meet the other processes; says which of how many this one is.

    Without being told that there is only a CPU, accelerate leaves processes on CPUs alone, each
    believing that it is the only one.
    """
    return PartialState(cpu=not torch.accelerator.is_available())


def make_accelerator() -> Accelerator:
    """Make what places the model and adds up gradients; precision is the loop's own business.

    BERT's pooler learns nothing, hence the search for parameters that are not used.
    """
    return Accelerator(
        mixed_precision="no",
        cpu=not torch.accelerator.is_available(),
        kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)],
    )
