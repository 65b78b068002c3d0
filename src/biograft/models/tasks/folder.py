"""Saving and loading trained task models.

A model whose labels are those of tokens or of a text is saved as transformers saves it, so that
``AutoModelForTokenClassification`` or ``AutoModelForSequenceClassification`` open the folder, with

====================  ==========================================================
``manifest.json``     task, configuration and labels; written last
``head.safetensors``  what follows the scores: the transitions of a CRF
====================  ==========================================================

Other models, of which transformers has none (spans, states of markers), have their encoder in
``encoder/`` and the weights of their head in ``head.safetensors``.
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
    from safetensors import SafetensorError, safe_open
    from safetensors.torch import load_file, save_file
    from transformers.utils import SAFE_WEIGHTS_NAME

    from biograft.models import TextEncoder
    from biograft.models.knowledge.entity_finder import EntityCoverage, limit_coverage
    from biograft.models.tasks.model import LabelNetwork, TaskModel, TaskNetwork
except ModuleNotFoundError as error:
    raise MissingExtraError("models", "a task model") from error

MODEL, ENCODER, HEAD = "model", "encoder", "head.safetensors"
TASK_MODEL = ArtifactKind(
    format="biograft-task-model",
    version=2,
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
        if isinstance(model.network, LabelNetwork):
            model.network.save_pretrained(work)
        else:
            encoder.save_pretrained(work / ENCODER)
        if head := model.network.head.state_dict():
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

    The model is called with a text (``ner``, ``classification``), a pair of texts (``matching``,
    ``inference``), or a dictionary or record of ``biograft.text.tasks``. A list, a frame or a
    ``datasets.Dataset`` of them gives a list of predictions, as its ``predict`` does.

    Args:
        folder: Folder of the model, or of its run.
        device: Device of torch; default: a GPU where there is one.

    >>> open_task("RUN")("no fever after aspirin").mentions  # doctest: +SKIP
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
    where = path / ENCODER
    encoder = TextEncoder.from_pretrained(where if where.is_dir() else path, device=device)
    if (coverage := manifest.get("entity_coverage")) is not None:
        limit_coverage(encoder, coverage)
    model = kind.build(encoder, config, labels)
    model.kind = manifest["task"]
    _load_head(path, model.network)
    return model


def _load_head(path: Path, network: TaskNetwork) -> None:
    """Load the weights that are not those of the encoder."""
    weights, file = network.head.state_dict(), path / HEAD
    try:
        if weights:
            network.head.load_state_dict(load_file(file))
        if isinstance(network, LabelNetwork):
            file = path / SAFE_WEIGHTS_NAME
            labels = network.label_weights()
            with safe_open(file, "pt") as tensors:
                for name, weight in labels.items():
                    weight.copy_(tensors.get_tensor(name))
            weights |= labels
    except (OSError, RuntimeError, SafetensorError) as error:
        raise TASK_MODEL.damaged(file, error) from error
    if not all(torch.isfinite(value).all() for value in weights.values()):
        raise TASK_MODEL.damaged(file, "it holds NaN or infinity")
