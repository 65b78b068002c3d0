"""What an epoch begins with on disk, one file an epoch, so that a run can be taken up within one.

``RUN/candidates/epoch-0000.safetensors``, or ``RUN/bank/...`` for vectors, states its format and
version in its header; what the run is made from stands in ``run.json``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from biograft.errors import StoreError
from biograft.linking.finetuning.candidates import Candidates
from biograft.runs import new_file

CANDIDATES, VECTORS = "biograft-candidates 1", "biograft-bank 1"
"""Name and version in one: of several entries the order in the file would be left to chance."""
_KINDS = {"texts": np.int64, "lexical": np.float32, "gold": np.bool_, "found": np.bool_}
Arrays: TypeAlias = dict[str, npt.NDArray[Any]]


def path_of(folder: Path, epoch: int) -> Path:
    """Say where the candidates, or vectors, of an epoch are."""
    return folder / f"epoch-{epoch:04d}.safetensors"


def save_candidates(folder: Path, epoch: int, candidates: Candidates) -> None:
    """Write the candidates of an epoch, whole or not at all."""
    _save(path_of(folder, epoch), CANDIDATES, {n: getattr(candidates, n) for n in _KINDS})


def load_candidates(folder: Path, epoch: int, n_lessons: int) -> Candidates:
    """Read the candidates of an epoch."""
    return Candidates(**_load(path_of(folder, epoch), CANDIDATES, _KINDS, n_lessons))


def save_vectors(folder: Path, epoch: int, vectors: npt.NDArray[np.float16]) -> None:
    """Write the vectors of an epoch's bank, whole or not at all."""
    _save(path_of(folder, epoch), VECTORS, {"vectors": vectors})


def load_vectors(folder: Path, epoch: int, n_names: int) -> npt.NDArray[np.float16]:
    """Read the vectors of an epoch's bank."""
    return _load(path_of(folder, epoch), VECTORS, {"vectors": np.float16}, n_names)["vectors"]


def _save(path: Path, form: str, arrays: Arrays) -> None:
    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    with new_file(path, overwrite=True) as file:
        file.write(save(whole, metadata={"format": form}))


def _load(path: Path, form: str, expected: Mapping[str, type], length: int) -> Arrays:
    try:
        with safe_open(path, "numpy") as file:
            metadata = file.metadata() or {}
            arrays: Arrays = {n: file.get_tensor(n) for n in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise StoreError(
            f"{path}: missing or damaged ({error}); the run cannot go on without it: start it anew"
        ) from error
    if metadata.get("format") != form:
        raise StoreError(
            f"{path}: expected {form!r}, found {metadata.get('format')!r}; start the run anew"
        )
    kinds = {name: array.dtype for name, array in arrays.items()}
    if kinds != expected or any(len(array) != length for array in arrays.values()):
        raise StoreError(f"{path}: does not belong to these mentions; start the run anew")
    return arrays
