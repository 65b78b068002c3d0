"""Put published weights into a model, or say which do not fit."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from torch import Tensor

from biograft.checkpoints.published import Published
from biograft.errors import InputError


def fill(
    model: Any,
    weights: Mapping[str, Tensor],
    published: Published,
    *,
    called: str,
    copies: Set[str] = frozenset(),
) -> None:
    """Put weights into a model in 32 bits; all of its own must be there and of the right shape.

    ``copies`` are those that the model ties to others; they may be missing, and are not read.
    """
    wanted = model.state_dict()
    missing = sorted(wanted.keys() - weights.keys() - copies)
    if missing:
        raise InputError(
            f"lacks {len(missing)} weights of {called}, first that of {missing[0]}",
            path=published.file, remedy="get it again",
        )  # fmt: skip
    for name, value in weights.items():
        expected = tuple(wanted[name].shape) if name in wanted else ()
        if tuple(value.shape) != expected:
            raise InputError(
                f"expected {expected} for {name}, found {tuple(value.shape)}", path=published.file
            )
    own = {name: value.float() for name, value in weights.items() if name not in copies}
    model.load_state_dict(own, strict=False)
    model.tie_weights()
