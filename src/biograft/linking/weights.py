"""How much letters count beside vectors, as fine-tuning learned it for an encoder.

Fine-tuning scores a name by ``cosine + weight * lexical score``, over a temperature that changes
no order. :class:`~biograft.linking.fusing.FusedSearch` brings weights to the sum of 1: with
``1 / (1 + weight)`` for vectors and ``weight / (1 + weight)`` for letters it puts the same names
in the same order. Both scores are those of the indexes themselves, 0 where the lexical index does
not hold a name; letters are compared alike if the index is made with the recipe's ``lexical``
steps. Only the search puts names that are the text itself first, whatever the weights.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from biograft.manifests import Kind

WEIGHTS = Kind(
    format="biograft-weights",
    version=1,
    called="search weights",
    remedy="train the encoder again, or remove the file: letters and vectors count alike then",
    file="biograft_weights.json",
    keys=("weights",),
)
_GENERATORS = ("dense", "lexical")


def write_weights(folder: Path, lexical: float, described: Mapping[str, Any]) -> None:
    """Write into an encoder's folder how much letters count; below 0 they help no search."""
    weights = {"dense": 1.0, "lexical": max(lexical, 0.0)}
    WEIGHTS.write(folder, {"weights": weights, "learned": {"lexical": lexical}, **described})


def read_weights(folder: Path) -> dict[str, float] | None:
    """Read the weights in an encoder's folder; none if none were learned."""
    path = folder / WEIGHTS.file
    if not path.exists():
        return None
    weights = WEIGHTS.read(folder)["weights"]
    if not are_weights(weights, _GENERATORS):
        raise WEIGHTS.damaged(path, f"weights are {weights!r}")
    return dict(weights)


def are_weights(value: object, generators: Collection[str]) -> bool:
    """Whether a value that was read says how much each of some generators counts."""
    if not isinstance(value, Mapping) or set(value) != set(generators):
        return False
    numbers = [number for number in value.values() if type(number) in (int, float)]
    in_range = all(math.isfinite(number) and number >= 0 for number in numbers)
    return len(numbers) == len(value) and in_range and sum(numbers) > 0
