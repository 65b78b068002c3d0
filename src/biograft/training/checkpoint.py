"""Checkpoints of a training run, for exact resume.

``checkpoints/step-00000010/`` holds ``model.safetensors``, ``optimiser.safetensors`` (by parameter
name) and ``state.json``. The learning rate, the order of batches and the random numbers of a step
follow from the step and the seed, so no more is needed. Frozen weights, such as the vectors of
entities, never change; they are saved once, in ``checkpoints/frozen/``. A folder gets its name only
when it is complete: a run killed while saving resumes from the previous checkpoint.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from biograft.artifacts import ArtifactKind, describe_files, new_folder, remove_abandoned
from biograft.errors import StoreError
from biograft.training.sharding import copy_part, gather

STATE = ArtifactKind(
    format="biograft-checkpoint",
    version=2,
    called="checkpoint",
    remedy="remove it to resume from the previous one",
    file="state.json",
    keys=("step", "epoch", "position", "accumulate", "loss_scaler", "files", "frozen"),
)
MODEL = "model.safetensors"
OPTIMISER = "optimiser.safetensors"
FROZEN = "frozen"


@dataclass(frozen=True, slots=True)
class Cursor:
    """The position of a run: updates made, and the next batch to read."""

    step: int = 0
    """Number of updates that were made."""
    epoch: int = 0
    """Number of the epoch, from 0."""
    position: int = 0
    """Number of the next batch in the epoch."""


@dataclass(frozen=True, slots=True)
class TrainingState:
    """State that a checkpoint saves and restores, besides the cursor."""

    model: nn.Module
    """Model with the weights."""
    optimiser: torch.optim.Optimizer
    """Optimiser with its moments."""
    scaler: torch.amp.GradScaler
    """Loss scaling of fp16."""
    accumulate: int = 1
    """Batches of an update; a cursor counts batches."""


def save_checkpoint(
    run: Path, cursor: Cursor, state: TrainingState, *, keep: int, main: bool = True
) -> Path:
    """Save a checkpoint atomically, then remove all but the newest ``keep`` (0: keep all).

    All processes call it, because the parts of a sharded model are gathered.

    Args:
        run: Folder of the run.
        cursor: Step, epoch and position.
        state: Model, optimiser and scaler.
        keep: Number of checkpoints that stay, the newest; 0: all.
        main: Whether this process writes.
    """
    frozen, changing = _split(state.model)
    model, optimiser = gather(changing, keep=main), gather(_optimiser_tensors(state), keep=main)
    target = run / "checkpoints" / f"step-{cursor.step:08d}"
    if not main:
        return target
    with new_folder(target, overwrite=True) as folder:
        save_file(_contiguous(model), folder / MODEL)
        save_file(_contiguous(optimiser), folder / OPTIMISER)
        described = {
            **asdict(cursor),
            "accumulate": state.accumulate,
            "loss_scaler": state.scaler.state_dict(),
            "frozen": _save_frozen(run, frozen),
        }
        STATE.write(folder, {**described, "files": describe_files(folder)})
    for old in find_checkpoints(run)[:-keep] if keep else []:
        shutil.rmtree(old)
    return target


def find_checkpoints(run: Path) -> list[Path]:
    """List the checkpoints of a run, oldest first."""
    return sorted(path for path in (run / "checkpoints").glob("step-*") if path.is_dir())


def load_checkpoint(folder: Path, state: TrainingState) -> Cursor:
    """Load a checkpoint into a model, its optimiser and the scaler of its loss.

    Args:
        folder: Folder of the checkpoint.
        state: Model, optimiser and scaler, changed in place.
    """
    described = STATE.read(folder)
    STATE.check_files(folder, described, hashes=True)
    try:
        frozen, changing = _split(state.model)
        _copy(load_file(folder / MODEL), changing)
        if frozen:
            _copy(_load_frozen(folder.parent / FROZEN, described["frozen"]), frozen)
        _restore_optimiser(load_file(folder / OPTIMISER), state)
        if state.scaler.is_enabled() and described["loss_scaler"]:
            state.scaler.load_state_dict(described["loss_scaler"])
    except (SafetensorError, RuntimeError, KeyError, OSError) as error:
        message = " ".join(str(error).split())
        raise StoreError(f"{folder}: does not fit this model or is damaged ({message})") from error
    # another number of processes reads the same examples in more or fewer batches
    position = described["position"] * state.accumulate // described["accumulate"]
    return Cursor(described["step"], described["epoch"], position)


def remove_unfinished(run: Path) -> None:
    """Remove the checkpoint that a killed process was saving."""
    for work in (run / "checkpoints").glob(".step-*"):
        remove_abandoned(work.with_name(work.name.split(".")[1]))


def _split(model: nn.Module) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the frozen weights of a model and those that change; shared ones once."""
    saved = model.state_dict(keep_vars=True)
    frozen: dict[str, Tensor] = {}
    changing: dict[str, Tensor] = {}
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if name in saved:
            group = frozen if _is_frozen(model, name, tensor) else changing
            group[name] = tensor.detach()
    return frozen, changing


def _is_frozen(model: nn.Module, name: str, tensor: Tensor) -> bool:
    """Whether no update changes a tensor; a module lists such buffers in ``constant_buffers``."""
    if isinstance(tensor, nn.Parameter):
        return not tensor.requires_grad
    owner, _, own_name = name.rpartition(".")
    return own_name in getattr(model.get_submodule(owner), "constant_buffers", ())


def _contiguous(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.contiguous() for name, tensor in tensors.items()}


def _save_frozen(run: Path, tensors: dict[str, Tensor]) -> dict[str, dict[str, Any]]:
    """Save the frozen weights of a run with its first checkpoint; describe the files."""
    folder = run / "checkpoints" / FROZEN
    if not tensors:
        return {}
    if not find_checkpoints(run) or not folder.exists():
        with new_folder(folder, overwrite=True) as work:
            save_file(_contiguous(tensors), work / MODEL)
    return describe_files(folder)


def _load_frozen(folder: Path, files: Mapping[str, Any]) -> dict[str, Tensor]:
    if describe_files(folder) != files:
        raise StoreError(f"{folder}: is missing or damaged; start a new run")
    return load_file(folder / MODEL)


@torch.no_grad()
def _copy(loaded: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> None:
    """Copy loaded tensors into those of the model; names and shapes must be the same."""
    if missing := sorted(own.keys() ^ loaded.keys()):
        raise KeyError(f"{missing[0]} is in only one of model and checkpoint")
    for name, tensor in own.items():
        if tensor.shape != loaded[name].shape:
            raise RuntimeError(f"{name}: {tuple(loaded[name].shape)} for {tuple(tensor.shape)}")
        copy_part(loaded[name], tensor)


def _optimiser_tensors(state: TrainingState) -> dict[str, Tensor]:
    return {
        f"{name}:{key}": value
        for name, parameter in state.model.named_parameters()
        for key, value in state.optimiser.state.get(parameter, {}).items()
    }


def _restore_optimiser(tensors: dict[str, Tensor], state: TrainingState) -> None:
    parameters = dict(state.model.named_parameters())
    for entry, value in tensors.items():
        name, _, key = entry.rpartition(":")
        parameter = parameters[name]
        own = torch.empty_like(parameter) if value.ndim else value.to(parameter.device)
        if value.ndim:
            copy_part(value, own)
        state.optimiser.state[parameter][key] = own
