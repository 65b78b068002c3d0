"""Numbers of half precision, in which sums and differences would be too coarse."""

from __future__ import annotations

import torch
from torch import Tensor


def in_single(numbers: Tensor) -> Tensor:
    """Bring half precision to single; others stay as they are."""
    return numbers.float() if numbers.dtype in (torch.float16, torch.bfloat16) else numbers
