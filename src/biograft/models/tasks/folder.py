"""Saving and loading trained task models.

====================  ==========================================================
``encoder/``          the encoder, which transformers loads as any other
``head.safetensors``  the weights of the head
``manifest.json``     task, configuration and labels; written last
====================  ==========================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from biograft.artifacts import ArtifactKind, describe_files, new_folder
from biograft.config import from_mapping
from biograft.errors import ConfigError, MissingExtraError, NotFoundError
from biograft.models.tasks.task import TASKS

try:
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file, save_file

    from biograft.models import TextEncoder
    from biograft.models.knowledge.entity_finder import EntityCoverage, limit_coverage
    from biograft.models.tasks.model import TaskModel
except ModuleNotFoundError as error:
    raise MissingExtraError("models", "a task model") from error

MODEL, ENCODER, HEAD = "model", "encoder", "head.safetensors"
TASK_MODEL = ArtifactKind(
    format="biograft-task-model",
    version=1,
    called="task model",
    remedy="train the model again (biograft finetune)",
    keys=("task", "config", "labels", "files"),
)


def write_model(folder: Path, model: TaskModel[Any, Any], about: Mapping[str, Any]) -> None:
    """Save a model, replacing an earlier one of the same run; ``about`` goes into its manifest.

    Args:
        folder: Folder to write.
        model: Trained model.
        about: Further entries of its manifest.
    """
    with new_folder(folder, overwrite=True) as work:
        encoder = model.network.encoder
        encoder.save_pretrained(work / ENCODER)
        head = model.network.head.state_dict()
        save_file({key: value.cpu().contiguous() for key, value in head.items()}, work / HEAD)
        description = {
            "task": model.kind,
            "config": asdict(model.config),
            "labels": list(model.labels),
            **model.settings(),
            **about,
        }
        if isinstance(encoder.finder, EntityCoverage):
            description["entity_coverage"] = encoder.finder.ratio
        TASK_MODEL.write(work, {**description, "files": describe_files(work)})


def open_task(folder: str | Path, *, device: str | None = None) -> TaskModel[Any, Any]:
    """Load a trained model from its folder or from the folder of its run.

    The ``predict`` method takes documents for ``ner``, and for other tasks the records of
    ``biograft.text.tasks``: relation examples, pairs (``matching``, ``inference``), class and
    ranking examples.

    Args:
        folder: Folder of the model, or of its run.
        device: Device of torch; default: a GPU where there is one.
    """
    path = Path(folder)
    if not TASK_MODEL.is_at(path) and TASK_MODEL.is_at(path / MODEL):
        path /= MODEL
    manifest = TASK_MODEL.read(path)
    TASK_MODEL.check_files(path, manifest)
    try:
        kind = TASKS.load(manifest["task"])
        config = from_mapping(kind.config, manifest["config"], "config.")
        labels = tuple(str(label) for label in manifest["labels"])
    except (ConfigError, NotFoundError, TypeError) as error:
        raise TASK_MODEL.damaged(path / TASK_MODEL.file, error) from error
    encoder = TextEncoder.from_pretrained(path / ENCODER, device=device)
    if (coverage := manifest.get("entity_coverage")) is not None:
        limit_coverage(encoder, coverage)
    model = kind.build(encoder, config, labels)
    model.kind = manifest["task"]
    try:
        model.network.head.load_state_dict(load_file(path / HEAD))
    except (OSError, RuntimeError, SafetensorError) as error:
        raise TASK_MODEL.damaged(path / HEAD, " ".join(str(error).split())) from error
    if not all(torch.isfinite(value).all() for value in model.network.head.parameters()):
        raise TASK_MODEL.damaged(path / HEAD, "it holds NaN or infinity")
    return model
