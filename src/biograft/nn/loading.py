"""Load a model and its tokenizer from a folder, or from the hub of models by name.

A folder is never looked up anywhere else. Weights that a file does not hold are an error here:
transformers would fill them in at random and say so only in its log.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from logging import ERROR
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError
from safetensors import SafetensorError
from transformers import AutoModel, AutoTokenizer
from transformers.utils import logging

from biograft.errors import NotFoundError, StoreError, shorten

_WANTED = ["*.json", "*.txt", "*.model", "*.safetensors", "*.bin"]
_UNWANTED = ["onnx/*", "openvino/*", "tf_*", "flax_*"]
_FAULTS = (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError)
"""What transformers raises for folders that are none, damaged or foreign."""


def find_encoder(name: str | Path) -> Path:
    """Find the folder of an encoder: the one named, or a copy from the hub, kept or fetched."""
    folder = Path(name)
    if folder.is_dir():
        return folder
    if isinstance(name, Path) or folder.exists() or _looks_like_a_path(name):
        raise NotFoundError(f"{name}: no such folder; expected the folder of an encoder")
    try:
        return Path(snapshot_download(name, local_files_only=True))
    except (OSError, ValueError):
        pass
    try:
        return Path(snapshot_download(name, allow_patterns=_WANTED, ignore_patterns=_UNWANTED))
    except (OSError, ValueError, HfHubHTTPError) as error:
        raise NotFoundError(
            f"{name}: is no folder here, and nothing of that name could be downloaded; name the "
            "folder of an encoder, or fetch it where there is a network and bring the folder"
        ) from error


def load_parts(folder: Path) -> tuple[Any, Any]:
    """Load the model and the tokenizer of a folder; weights in 32 bits, whole and finite."""
    try:
        with quiet_transformers():
            model, report = AutoModel.from_pretrained(
                folder, local_files_only=True, dtype=torch.float32, output_loading_info=True
            )
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except _FAULTS as error:
        reason = shorten(str(error).strip().partition("\n")[0])
        raise StoreError(
            f"{folder}: holds no encoder that can be loaded ({reason}); expected the config.json, "
            "weights and tokenizer of a transformers model"
        ) from error
    # no pooling of ours reads the pooler
    missing = sorted(key for key in report["missing_keys"] if "pooler." not in key)
    if missing:
        raise StoreError(
            f"{folder}: the file of weights lacks {len(missing)} of the model's tensors "
            f"({missing[0]}, ...); get the encoder again, or convert it first"
        )
    for key, weight in model.named_parameters():
        if not torch.isfinite(weight).all():
            raise StoreError(f"{folder}: the weights hold NaN or infinity ({key}); train it again")
    return model, tokenizer


def _looks_like_a_path(name: str) -> bool:
    return name.startswith((".", "~", os.sep)) or name.count("/") > 1 or "\\" in name


@contextlib.contextmanager
def quiet_transformers() -> Iterator[None]:
    """Keep transformers from drawing bars and warning on stderr; faults are raised all the same."""
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(ERROR)
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]
