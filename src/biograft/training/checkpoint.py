"""Checkpoints of a training run, for exact resume.

``checkpoints/step-00000010/`` holds ``model.safetensors``, ``optimiser.safetensors`` (by parameter
name) and ``state.json``. The learning rate, the order of batches and the random numbers of a step
follow from the step and the seed, so no more is needed. A folder gets its name only when it is
complete: a run killed while saving resumes from the previous checkpoint.
"""

from __future__ import annotations

import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, load_model, save_file, save_model
from torch import Tensor, nn

from biograft.artifacts import ArtifactKind, file_sizes, new_folder, remove_abandoned
from biograft.errors import StoreError

STATE = ArtifactKind(
    format="biograft-checkpoint",
    version=1,
    called="checkpoint",
    remedy="remove it to resume from the previous one",
    file="state.json",
    keys=("step", "epoch", "position", "files"),
)


@dataclass(frozen=True, slots=True)
class Cursor:
    """The position of a run: updates made, and the next batch to read."""

    step: int = 0
    epoch: int = 0
    position: int = 0


def save_checkpoint(
    run: Path, cursor: Cursor, model: nn.Module, optimiser: torch.optim.Optimizer, *, keep: int
) -> Path:
    """Save a checkpoint atomically, then remove all but the newest ``keep`` (0: keep all)."""
    target = run / "checkpoints" / f"step-{cursor.step:08d}"
    with new_folder(target, overwrite=True) as folder:
        save_model(model, str(folder / "model.safetensors"))
        save_file(_optimiser_tensors(model, optimiser), folder / "optimiser.safetensors")
        STATE.write(folder, {**asdict(cursor), "files": file_sizes(folder)})
    for old in find_checkpoints(run)[:-keep] if keep else []:
        shutil.rmtree(old)
    return target


def find_checkpoints(run: Path) -> list[Path]:
    """List the checkpoints of a run, oldest first."""
    return sorted(path for path in (run / "checkpoints").glob("step-*") if path.is_dir())


def load_checkpoint(folder: Path, model: nn.Module, optimiser: torch.optim.Optimizer) -> Cursor:
    """Load a checkpoint into a model and its optimiser."""
    cursor = _read_cursor(folder)
    try:
        load_model(model, str(folder / "model.safetensors"))
        _restore_optimiser(load_file(folder / "optimiser.safetensors"), model, optimiser)
    except (SafetensorError, RuntimeError, KeyError, OSError) as error:
        message = " ".join(str(error).split())
        raise StoreError(f"{folder}: does not fit this model or is damaged ({message})") from error
    return cursor


def remove_unfinished(run: Path) -> None:
    """Remove the checkpoint that a killed process was saving."""
    for work in (run / "checkpoints").glob(".step-*"):
        remove_abandoned(work.with_name(work.name.split(".")[1]))


def _read_cursor(folder: Path) -> Cursor:
    state = STATE.read(folder)
    STATE.check_files(folder, state)
    return Cursor(state["step"], state["epoch"], state["position"])


def _optimiser_tensors(model: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    return {
        f"{name}:{key}": value.contiguous()
        for name, parameter in model.named_parameters()
        for key, value in optimiser.state.get(parameter, {}).items()
    }


def _restore_optimiser(
    tensors: dict[str, Tensor], model: nn.Module, optimiser: torch.optim.Optimizer
) -> None:
    parameters = dict(model.named_parameters())
    for entry, value in tensors.items():
        name, _, key = entry.rpartition(":")
        parameter = parameters[name]
        optimiser.state[parameter][key] = value.to(parameter.device)
