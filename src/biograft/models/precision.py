"""Mixed precision: fp32, or autocast to bfloat16 or float16.

Weights stay in 32 bits; under autocast the matrix products run in 16 bits. ``auto`` is bf16 where
the hardware has instructions for it. GPUs without them (V100, T4) use fp16, whose small gradients
need loss scaling in training; processors without them use fp32, which is faster than emulation.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import torch
from torch import nn
from transformers import PreTrainedModel

from biograft.errors import ConfigError

PRECISIONS = ("auto", "fp32", "bf16", "fp16")
_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
_BF16_FLAGS = ("avx512_bf16", "amx_bf16", "bf16")
"""Processor flags of bfloat16 instructions (x86 twice, then Arm)."""
_INT8_FLAGS = ("avx512_vnni", "avx_vnni", "amx_int8")
"""Processor flags of instructions for sums of products of 8-bit integers."""
_PROCESSOR = Path("/proc/cpuinfo")


@functools.cache
def processor_has_bf16() -> bool:
    """Whether this processor has instructions for bfloat16 products."""
    return _has_any(_BF16_FLAGS)


@functools.cache
def processor_has_int8() -> bool:
    """Whether this processor has instructions for sums of products of 8-bit integers."""
    return _has_any(_INT8_FLAGS)


def _has_any(flags: tuple[str, ...]) -> bool:
    get_capabilities = getattr(torch.cpu, "get_capabilities", None)  # missing in older torch
    if get_capabilities is not None:
        capabilities = get_capabilities()
        return any(capabilities.get(name) for name in flags)
    try:
        words = set(_PROCESSOR.read_text(encoding="utf-8").split())
    except OSError:
        return False
    return not words.isdisjoint(flags)


def choose_precision(precision: str, device: torch.device) -> str:
    """Resolve ``auto`` for a device: bf16 if it is supported, else fp16 on CUDA and fp32 on CPU.

    Args:
        precision: One of ``PRECISIONS``.
        device: Device that computes.
    """
    if precision not in PRECISIONS:
        raise ConfigError(
            f"precision: expected one of {', '.join(PRECISIONS)}, found {precision!r}"
        )
    if precision != "auto":
        return precision
    if device.type == "cpu":
        return "bf16" if processor_has_bf16() else "fp32"
    if device.type != "cuda":
        return "fp32"
    return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp16"


def autocast_in(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """Return the autocast context of a precision on a device.

    Args:
        precision: One of ``PRECISIONS``.
        device: Device that computes.
    """
    dtype = _DTYPES.get(choose_precision(precision, device))
    return torch.autocast(device.type, dtype=dtype, enabled=dtype is not None)


def loss_scaler(precision: str, device: torch.device) -> torch.amp.GradScaler:
    """Return the scaler of losses; it scales only under fp16, otherwise it passes them on.

    Args:
        precision: One of ``PRECISIONS``.
        device: Device that computes.
    """
    return torch.amp.GradScaler(device.type, enabled=choose_precision(precision, device) == "fp16")


@contextmanager
def attention_for_training(
    model: nn.Module, precision: str, device: torch.device
) -> Iterator[None]:
    """Switch encoders to the attention implementation with the fastest backward pass.

    For bfloat16 on a CPU that is the eager one: the backward pass of fused attention (SDPA) uses a
    slow routine, and computes in 32 bits with dropout. The states differ by rounding only.

    Args:
        model: Model whose encoders are switched.
        precision: One of ``PRECISIONS``.
        device: Device of the training.
    """
    if device.type != "cpu" or choose_precision(precision, device) != "bf16":
        yield
        return
    fused = [
        module
        for module in model.modules()
        if isinstance(module, PreTrainedModel) and module.config._attn_implementation == "sdpa"
    ]
    try:
        for module in fused:
            module.set_attn_implementation("eager")
        yield
    finally:
        for module in fused:
            module.set_attn_implementation("sdpa")
