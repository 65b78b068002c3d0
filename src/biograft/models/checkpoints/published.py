"""Reading of published checkpoints: weights, configuration, tokenizer."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from biograft.errors import InputError, NotFoundError, shorten

_WEIGHTS = ("model.safetensors", "pytorch_model.bin")
_CONFIGS = ("config.json", "bert_config.json")
_VOCABULARIES = ("tokenizer.json", "vocab.json", "vocab.txt")
_OLD_NAMES = ((r"(^|\.)gamma$", r"\1weight"), (r"(^|\.)beta$", r"\1bias"), (r"^module\.", ""))


@dataclass(frozen=True, slots=True)
class Published:
    """A published checkpoint; its weights have current names (``weight``, not ``gamma``)."""

    folder: Path
    file: Path
    """The file that the weights were read from."""
    weights: Mapping[str, Tensor]
    config: Mapping[str, Any]

    def size(self, key: str, axis: int = 0) -> int:
        """Return the size of a weight along an axis.

        Args:
            key: Name of the weight.
            axis: The axis.
        """
        if key not in self.weights:
            raise InputError(f"lacks the weight {key}", path=self.file, remedy="get it again")
        return int(self.weights[key].shape[axis])


def read_published(path: Path) -> Published:
    """Read a checkpoint from its folder or its weights file."""
    if not path.exists():
        raise NotFoundError(f"{path}: no such checkpoint; expected its folder")
    folder = path if path.is_dir() else path.parent
    file = _find(folder, _WEIGHTS, "weights") if path.is_dir() else path
    weights = {_rename(key): value for key, value in _load(file).items()}
    weights = {key: value for key, value in weights.items() if not key.endswith("position_ids")}
    return Published(folder, file, weights, _read_config(_find(folder, _CONFIGS, "configuration")))


def check_tokenizer(folder: Path) -> None:
    """Refuse a folder without the files of a tokenizer."""
    if not any((folder / name).is_file() for name in _VOCABULARIES):
        raise InputError(
            "holds no tokenizer, which belongs to the weights",
            path=folder,
            remedy=f"expected {' or '.join(_VOCABULARIES)}; or name one (--tokenizer)",
        )


def _find(folder: Path, names: tuple[str, ...], what: str) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise InputError(f"holds no {what}", path=folder, remedy=f"expected {' or '.join(names)}")


def _rename(key: str) -> str:
    for old, new in _OLD_NAMES:
        key = re.sub(old, new, key)
    return key


def _load(file: Path) -> dict[str, Tensor]:
    """Read weights; from a pickle, tensors only, so that no code in it is run."""
    try:
        if file.suffix == ".safetensors":
            return load_file(file)
        content = torch.load(file, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, SafetensorError, pickle.UnpicklingError) as error:
        reason = shorten(str(error).strip().partition("\n")[0])
        raise InputError(f"holds no weights that can be read ({reason})", path=file) from error
    tensors = isinstance(content, Mapping) and all(
        isinstance(value, Tensor) for value in content.values()
    )
    if not tensors or not content:
        raise InputError("expected a table of weights by name", path=file)
    return dict(content)


def _read_config(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"cannot be read ({error})", path=path) from error
    if not isinstance(content, dict):
        raise InputError("expected a JSON object", path=path)
    return content


def load_weights(
    model: Any,
    weights: Mapping[str, Tensor],
    published: Published,
    *,
    called: str,
    optional: Set[str] = frozenset(),
) -> None:
    """Load weights into a model in 32 bits; all must be present with the right shape.

    Args:
        model: A PyTorch module, changed in place.
        weights: Weights by the name that they have in the model.
        published: Checkpoint they are from, for errors.
        called: Name of the model in errors.
        optional: Weights that are tied to others in the model; they are not read.
    """
    wanted = model.state_dict()
    missing = sorted(wanted.keys() - weights.keys() - optional)
    if missing:
        raise InputError(
            f"lacks {len(missing)} weights of {called}, first {missing[0]}",
            path=published.file,
            remedy="get it again",
        )
    for name, value in weights.items():
        expected = tuple(wanted[name].shape) if name in wanted else ()
        if tuple(value.shape) != expected:
            raise InputError(
                f"expected {expected} for {name}, found {tuple(value.shape)}", path=published.file
            )
    own = {name: value.float() for name, value in weights.items() if name not in optional}
    model.load_state_dict(own, strict=False)
    model.tie_weights()
