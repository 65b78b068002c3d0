"""Distributed training: the processes that ``torchrun`` started, or this one alone."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from accelerate import Accelerator, DistributedDataParallelKwargs, DistributedType, PartialState
from accelerate.state import is_initialized
from torch import Tensor, distributed

from biograft.errors import ConfigError


def join_processes() -> PartialState:
    """Join the other processes; return the rank of this one and their number.

    ``cpu`` must be set without an accelerator: otherwise accelerate does not connect processes on
    CPUs, and each trains alone.
    """
    refuse_lone_process(os.environ)
    return PartialState(cpu=not torch.accelerator.is_available())


def refuse_several(trained: str) -> None:
    """Refuse a training that only one process can do, where several were started."""
    if (n := join_processes().num_processes) > 1:
        raise ConfigError(f"{trained}: trains in one process, found {n}; start it without torchrun")


def refuse_lone_process(environment: Mapping[str, str]) -> None:
    """Refuse a single process where several were requested.

    ``accelerate launch --cpu --num_processes 2`` starts one, with the address of the others
    (``MASTER_ADDR``) but not their number (``WORLD_SIZE``).
    """
    launched = any(name.startswith("ACCELERATE_") for name in environment)
    if launched and "MASTER_ADDR" in environment and "WORLD_SIZE" not in environment:
        raise ConfigError(
            "accelerate launch started one process instead of several; on CPUs start "
            "them with: torchrun --nproc-per-node=N -m biograft ..."
        )


def make_accelerator(run: Path, trackers: Sequence[str] = ()) -> Accelerator:
    """Make the accelerator that places the model and sums gradients; the loop sets precision.

    BERT's pooler is not trained, hence the search for unused parameters. Buffers are equal in all
    processes and stay so; they are not broadcast at every step, because the neighbours of a large
    graph are among them.

    Args:
        run: Folder of the run, for trackers that write files.
        trackers: Names of trackers.
    """
    accelerator = Accelerator(
        log_with=[*trackers] or None,
        project_dir=run,
        mixed_precision=None if is_initialized() else "no",
        cpu=not torch.accelerator.is_available(),
        kwargs_handlers=[
            DistributedDataParallelKwargs(find_unused_parameters=True, broadcast_buffers=False)
        ],
    )
    accelerator.native_amp, accelerator.scaler = False, None  # a Trainer may have set a precision
    refuse_sharding(accelerator.distributed_type)
    return accelerator


def refuse_sharding(kind: DistributedType) -> None:
    """Refuse an accelerate configuration that divides the model, as ``training.shard`` does."""
    if kind in (DistributedType.FSDP, DistributedType.DEEPSPEED, DistributedType.MEGATRON_LM):
        raise ConfigError(
            f"accelerate is configured for {kind.value}, which the training here does not use; "
            "configure it without, and save memory by training.shard (in pre-training), "
            "training.device_batch_size and training.gradient_checkpointing"
        )


def gather(own: Tensor) -> Tensor:
    """Join the rows of all processes in training, which may differ in number, in order of rank.

    The values are the same in each process. A gradient flows only to a process's own rows, times
    the number of processes: their mean, which DDP takes, is then the gradient of a loss of all
    rows.

    Args:
        own: Rows of this process.
    """
    world = _n_processes()
    if world == 1 or not torch.is_grad_enabled():
        return own
    sizes = [torch.zeros(1, dtype=torch.int64, device=own.device) for _ in range(world)]
    distributed.all_gather(sizes, torch.tensor([len(own)], device=own.device))
    padded = own.new_zeros((max(map(int, sizes)), *own.shape[1:]))
    padded[: len(own)] = own.detach()
    parts = [torch.empty_like(padded) for _ in sizes]
    distributed.all_gather(parts, padded)
    rows = [part[: int(size)] for part, size in zip(parts, sizes, strict=True)]
    if own.requires_grad:
        fixed = own.detach()
        rows[distributed.get_rank()] = fixed + world * (own - fixed)
    return torch.cat(rows)


def _n_processes() -> int:
    return distributed.get_world_size() if distributed.is_initialized() else 1


def own_part(n: int) -> range:
    """Return the rows of this process among ``n`` rows that processes divide among them."""
    rank = distributed.get_rank() if distributed.is_initialized() else 0
    return range(rank, n, _n_processes())


def gather_rows(own: Tensor, n: int) -> Tensor:
    """Gather ``n`` rows, of which each process has those of its ``own_part``, in their order.

    Args:
        own: Rows of this process.
        n: Rows of all processes.
    """
    if len(own) == n:  # they are not divided
        return own
    world = _n_processes()
    order = torch.tensor([row for rank in range(world) for row in range(rank, n, world)])
    return gather(own)[order.argsort().to(own.device)]
