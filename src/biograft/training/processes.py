"""Which processes train together: those that ``torchrun`` started, or this one alone."""

from __future__ import annotations

import os
from collections.abc import Mapping

import torch
from accelerate import Accelerator, DistributedDataParallelKwargs, PartialState

from biograft.errors import ConfigError


def join_processes() -> PartialState:
    """Meet the other processes; says which of how many this one is.

    Without being told that there is only a CPU, accelerate leaves processes on CPUs alone, each
    believing that it is the only one.
    """
    refuse_lone_process(os.environ)
    return PartialState(cpu=not torch.accelerator.is_available())


def refuse_lone_process(environment: Mapping[str, str]) -> None:
    """Refuse to be the only one where several processes were asked for.

    ``accelerate launch --cpu --num_processes 2`` starts one, and says where the others are to be
    met (``MASTER_ADDR``) but not how many there are (``WORLD_SIZE``).
    """
    launched = any(name.startswith("ACCELERATE_") for name in environment)
    if launched and "MASTER_ADDR" in environment and "WORLD_SIZE" not in environment:
        raise ConfigError(
            "accelerate launch was asked for several processes and started one; on CPUs start "
            "them with: torchrun --nproc-per-node=N -m biograft ..."
        )


def make_accelerator() -> Accelerator:
    """Make what places the model and adds up gradients; precision is the loop's own business.

    BERT's pooler learns nothing, hence the search for parameters that are not used. Buffers are
    alike from the beginning, and what is made of equal weights stays so: they are not sent around
    at every step, the neighbours of a large graph among them.
    """
    return Accelerator(
        mixed_precision="no",
        cpu=not torch.accelerator.is_available(),
        kwargs_handlers=[
            DistributedDataParallelKwargs(find_unused_parameters=True, broadcast_buffers=False)
        ],
    )
