"""The folder of a trained task model: its files, and the manifest that is written last.

====================  ==========================================================
``encoder/``          the encoder, which transformers loads as any other
``head.safetensors``  the head
====================  ==========================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from biograft.artifacts import Kind, file_sizes, new_folder
from biograft.config import from_mapping
from biograft.errors import ConfigError, MissingExtraError, NotFoundError
from biograft.tasks.task import TASKS

try:
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file, save_file

    from biograft.nn import TextEncoder
    from biograft.tasks.model import TaskModel
except ModuleNotFoundError as error:
    raise MissingExtraError("models", "a model of a task") from error

MODEL, ENCODER, HEAD = "model", "encoder", "head.safetensors"
TASK_MODEL = Kind(
    format="biograft-task-model",
    version=1,
    called="task model",
    remedy="train the model again (biograft finetune)",
    keys=("task", "config", "labels", "files"),
)


def write_model(folder: Path, model: TaskModel[Any, Any], about: Mapping[str, Any]) -> None:
    """Write a model, replacing an earlier one of the same run; ``about`` is kept with it."""
    with new_folder(folder, overwrite=True) as work:
        model.network.encoder.save(work / ENCODER)
        head = model.network.head.state_dict()
        save_file({key: value.cpu().contiguous() for key, value in head.items()}, work / HEAD)
        described = {
            "task": model.kind,
            "config": asdict(model.config),
            "labels": list(model.labels),
            **model.settings(),
            **about,
        }
        TASK_MODEL.write(work, {**described, "files": file_sizes(work)})


def open_task(folder: str | Path, *, device: str | None = None) -> TaskModel[Any, Any]:
    """Open a trained model, or the one of a run; its ``predict`` answers examples.

    For ``ner`` examples are documents, for other tasks the records of ``biograft.corpus.tasks``:
    relation examples, pairs (``matching``, ``inference``), class and ranking examples.
    """
    place = Path(folder)
    if not TASK_MODEL.is_at(place) and TASK_MODEL.is_at(place / MODEL):
        place /= MODEL
    manifest = TASK_MODEL.read(place)
    TASK_MODEL.check_files(place, manifest)
    try:
        kind = TASKS.load(manifest["task"])
        config = from_mapping(kind.config, manifest["config"], "config.")
        labels = tuple(str(label) for label in manifest["labels"])
    except (ConfigError, NotFoundError, TypeError) as error:
        raise TASK_MODEL.damaged(place / TASK_MODEL.file, error) from error
    encoder = TextEncoder.from_pretrained(place / ENCODER, device=device)
    model = kind.build(encoder, config, labels)
    try:
        model.network.head.load_state_dict(load_file(place / HEAD))
    except (OSError, RuntimeError, SafetensorError) as error:
        raise TASK_MODEL.damaged(place / HEAD, " ".join(str(error).split())) from error
    if not all(torch.isfinite(value).all() for value in model.network.head.parameters()):
        raise TASK_MODEL.damaged(place / HEAD, "it holds NaN or infinity")
    return model
