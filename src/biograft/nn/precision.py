"""In which precision a model computes: full, or bfloat16 where the machine is quicker in it.

Weights stay in 32 bits; under autocast only the products run in bfloat16. On processors without
instructions for it, bfloat16 is emulated and many times slower, so ``auto`` looks first.
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

PRECISIONS = ("auto", "fp32", "bf16")
_QUICK = ("avx512_bf16", "amx_bf16", "bf16")
"""What a processor says when it multiplies bfloat16 by itself (x86 twice, then Arm)."""
_PROCESSOR = Path("/proc/cpuinfo")


@functools.cache
def processor_has_bf16() -> bool:
    """Whether this processor has instructions for products in bfloat16."""
    look = getattr(torch.cpu, "get_capabilities", None)  # older torch does not tell
    if look is not None:
        capabilities = look()
        return any(capabilities.get(name) for name in _QUICK)
    try:
        words = set(_PROCESSOR.read_text(encoding="utf-8").split())
    except OSError:
        return False
    return not words.isdisjoint(_QUICK)


def choose_precision(precision: str, device: torch.device) -> str:
    """Resolve ``auto`` for a device: bf16 where that is quick, else fp32."""
    if precision not in PRECISIONS:
        raise ConfigError(
            f"precision: expected one of {', '.join(PRECISIONS)}, found {precision!r}"
        )
    if precision != "auto":
        return precision
    if device.type == "cpu":
        return "bf16" if processor_has_bf16() else "fp32"
    quick = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    return "bf16" if quick else "fp32"


def computing_in(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """Give the context in which a model on a device computes in a precision."""
    chosen = choose_precision(precision, device)
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=chosen == "bf16")


@contextmanager
def attending_for_gradients(
    model: nn.Module, precision: str, device: torch.device
) -> Iterator[None]:
    """Let encoders attend for this time in the way whose gradients are the quickest to compute.

    On processors in bfloat16 that is the plain one: the backward pass of the fused one multiplies
    by a slow routine, and with dropout it computes in 32 bits. States differ by rounding alone.
    """
    if device.type != "cpu" or choose_precision(precision, device) != "bf16":
        yield
        return
    fused = [
        part
        for part in model.modules()
        if isinstance(part, PreTrainedModel) and part.config._attn_implementation == "sdpa"
    ]
    try:
        for part in fused:
            part.set_attn_implementation("eager")
        yield
    finally:
        for part in fused:
            part.set_attn_implementation("sdpa")
