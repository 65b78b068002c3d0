"""Arrays of a folder put out of order, in ways that its manifest does not tell."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def _with_first(value: float) -> Callable[[np.ndarray], np.ndarray]:
    def change(array: np.ndarray) -> np.ndarray:
        changed = array.copy()
        changed.flat[0] = value
        return changed

    return change


def _beyond(array: np.ndarray) -> np.ndarray:
    """Make the first number the largest that its kind can be."""
    of_kind = np.iinfo if array.dtype.kind in "iu" else np.finfo
    return _with_first(of_kind(array.dtype).max)(array)


def _below(array: np.ndarray) -> np.ndarray:
    return _with_first(-1)(array.astype(array.dtype.str.replace("u", "i"))).view(array.dtype)


DAMAGES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "beyond": _beyond,
    "below": _below,
    "cut short": lambda array: array[:-1],
    "longer": lambda array: np.concatenate([array, array[-1:]]),
    "empty": lambda array: array[:0],
    "of other numbers": lambda array: array.astype(np.complex64),
    "in wider numbers": lambda array: array.astype(f">{array.dtype.kind}8"),
    "in narrower numbers": lambda array: array.astype(np.uint8),
    "in two axes": lambda array: array[:, None],
}


def damage(folder: Path, name: str, how: str) -> None:
    """Damage one array of a folder."""
    put(folder, name, DAMAGES[how](np.load(folder / f"{name}.npy")))


def put(folder: Path, name: str, array: np.ndarray) -> None:
    """Put another array in the place of one, as long as the manifest says."""
    np.save(folder / f"{name}.npy", array)
    retell(folder)


def retell(folder: Path) -> None:
    """Let the manifest tell the sizes that the files have now."""
    path = folder / "manifest.json"
    manifest: dict[str, Any] = json.loads(path.read_text())
    for name, entry in manifest["files"].items():
        size = (folder / name).stat().st_size
        manifest["files"][name] = {**entry, "bytes": size} if isinstance(entry, dict) else size
    path.write_text(json.dumps(manifest))
