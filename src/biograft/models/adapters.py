"""Low-rank adapters (LoRA; Hu et al. 2022) in a model of transformers, by ``peft``.

A model keeps its class: its linear layers are replaced in place, and only the adapters are trained.
What is saved is the plain model with the adapters added to its weights, and the adapters beside it.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from biograft.config import AtLeast, Config, Range
from biograft.errors import ConfigError, MissingExtraError

ADAPTER = "adapter"
"""The folder of the adapters, in that of their model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoraSettings(Config):
    """Low-rank adapters, which are trained in place of the weights of a model."""

    r: Annotated[int, AtLeast(1)] = 8
    """Rank of an adapter."""
    alpha: Annotated[int, AtLeast(1)] = 16
    """Numerator of the factor ``alpha / r`` of the adapter's output."""
    dropout: Annotated[float, Range(min=0, below=1)] = 0.0
    """Dropout of the inputs of adapters."""
    modules: tuple[str, ...] = ()
    """Names of the layers with an adapter, such as ``q_proj``; empty: all linear ones but the last
    of a language model."""


def add_adapters(model: Any, lora: LoraSettings | None) -> None:
    """Put adapters into a model, which change nothing until they are trained.

    Args:
        model: Model of transformers, changed in place.
        lora: Sizes and places of the adapters; None adds none.
    """
    if lora is None:
        return
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ModuleNotFoundError as error:
        raise MissingExtraError("lora", "a low-rank adapter (lora)") from error
    import torch

    config = LoraConfig(
        r=lora.r,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=list(lora.modules) or "all-linear",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        try:
            inject_adapter_in_model(config, model)
        except ValueError as error:
            raise ConfigError(f"lora.modules: {str(error).partition('.')[0]}") from error


def has_adapters(model: Any) -> bool:
    """Return True if a model, or one inside it, has adapters."""
    return any("peft_config" in vars(part) for part in model.modules())


def merge_adapters(model: Any) -> Any:
    """Return a plain copy with the adapters added to the weights; without adapters, the model."""
    if not has_adapters(model):
        return model
    from peft.tuners.tuners_utils import BaseTunerLayer

    plain = deepcopy(model)
    for name, layer in list(plain.named_modules()):
        vars(layer).pop("peft_config", None)
        if isinstance(layer, BaseTunerLayer):
            layer.merge()
            plain.set_submodule(name, layer.get_base_layer())
    return plain


def save_adapters(model: Any, folder: Path) -> None:
    """Write the adapters of a model, if it has any, as peft reads them.

    Args:
        model: Model of transformers.
        folder: Folder of the model.
    """
    if not has_adapters(model):
        return
    from peft import get_peft_model_state_dict
    from safetensors.torch import save_file

    weights = get_peft_model_state_dict(model)
    model.peft_config["default"].save_pretrained(folder / ADAPTER)
    save_file(
        {f"base_model.model.{key}": value.contiguous() for key, value in weights.items()},
        folder / ADAPTER / "adapter_model.safetensors",
    )
