"""Sharded training: weights, gradients and optimiser state divided among the processes.

PyTorch's ``fully_shard`` divides the layers of each transformer one by one, and all other trained
weights together: a process gathers the weights of a layer when it computes with it, and keeps its
own part only. Frozen weights stay whole in every process, since gathering would need the same
memory at the peak. Checkpoints and saved models are whole; the first process writes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

import torch
from torch import Tensor, distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor
from transformers import PreTrainedModel

from biograft.errors import ConfigError


def shard_model(model: nn.Module, device: torch.device) -> None:
    """Divide the trained weights of a model among the processes, in place.

    Args:
        model: The model, changed in place.
        device: Device of this process.
    """
    trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    if scalars := [name for name, parameter in trained if not parameter.ndim]:
        raise ConfigError(
            f"training.shard: expected false, because {scalars[0]} of this model is a single "
            "number, which cannot be divided; found true"
        )
    frozen = {parameter for parameter in model.parameters() if not parameter.requires_grad}
    mesh = init_device_mesh(device.type, (distributed.get_world_size(),))
    for layer in _layers(model):
        fully_shard(layer, mesh=mesh, ignored_params=frozen)
    fully_shard(model, mesh=mesh, ignored_params=frozen)


def _layers(model: nn.Module) -> Iterator[nn.Module]:
    """Return the layers of the transformers in a model."""
    transformers = [part for part in model.modules() if isinstance(part, PreTrainedModel)]
    stacks = {
        id(stack): stack
        for part in transformers
        for stack in part.modules()
        if isinstance(stack, nn.ModuleList)
    }
    for stack in stacks.values():
        yield from stack


def is_sharded(model: nn.Module) -> bool:
    """Whether the weights of a model are divided among the processes."""
    return isinstance(model, FSDPModule)


def exchange_gradients(model: nn.Module, *, wanted: bool) -> None:
    """Let the next backward pass of a sharded model exchange gradients, or only sum them up.

    Args:
        model: A sharded model.
        wanted: Exchange them; without, sum them up.
    """
    cast("FSDPModule", model).set_requires_gradient_sync(wanted)


def whole_tensor(tensor: Tensor) -> Tensor:
    """Gather a tensor if it is sharded; all processes must call it."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def gather(tensors: Mapping[str, Tensor], *, keep: bool) -> dict[str, Tensor]:
    """Gather sharded tensors, one by one; all processes must call it, one keeps the result.

    Gathered tensors are in main memory; whole ones are returned as they are.

    Args:
        tensors: Tensors by name.
        keep: Whether this process keeps the result.
    """
    whole: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        gathered = tensor.full_tensor().cpu() if isinstance(tensor, DTensor) else tensor
        if keep:
            whole[name] = gathered
    return whole


@torch.no_grad()
def copy_part(whole: Tensor, own: Tensor) -> None:
    """Copy a whole tensor, or this process's part of it, into a tensor of the same shape.

    Args:
        whole: The whole tensor.
        own: Tensor to copy into, sharded or not.
    """
    if not isinstance(own, DTensor):
        own.copy_(whole)
        return
    local = own.to_local()
    parts = whole.chunk(own.device_mesh.size())
    rank = own.device_mesh.get_local_rank()
    if rank < len(parts):  # with fewer rows than processes, some have none
        local.copy_(parts[rank])


def unshard_model(model: nn.Module) -> None:
    """Make every weight of a sharded model whole again, in place, to save the model."""
    for part in model.modules():
        if isinstance(part, FSDPModule):
            part.reshard()
    whole: dict[Tensor, nn.Parameter] = {}
    for part in model.modules():
        for name, parameter in part.named_parameters(recurse=False):
            if isinstance(parameter, DTensor):
                if parameter not in whole:  # tied weights stay tied
                    whole[parameter] = nn.Parameter(parameter.full_tensor().detach())
                setattr(part, name, whole[parameter])
