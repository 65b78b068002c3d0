"""Candidates on disk, one file an epoch, so that a run can be taken up within one.

``RUN/candidates/epoch-0000.safetensors`` states its format and version in its header; what the
run is made from stands in ``run.json``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from biograft.errors import StoreError
from biograft.linking.finetuning.candidates import Candidates
from biograft.runs import new_file

FORMAT = "biograft-candidates 1"
"""Name and version in one: of several entries the order in the file would be left to chance."""
_KINDS = {"texts": np.int64, "lexical": np.float32, "gold": np.bool_, "found": np.bool_}


def path_of(folder: Path, epoch: int) -> Path:
    """Say where the candidates of an epoch are."""
    return folder / f"epoch-{epoch:04d}.safetensors"


def save_candidates(folder: Path, epoch: int, candidates: Candidates) -> None:
    """Write the candidates of an epoch, whole or not at all."""
    arrays = {name: np.ascontiguousarray(getattr(candidates, name)) for name in _KINDS}
    with new_file(path_of(folder, epoch), overwrite=True) as file:
        file.write(save(arrays, metadata={"format": FORMAT}))


def load_candidates(folder: Path, epoch: int, n_lessons: int) -> Candidates:
    """Read the candidates of an epoch."""
    path = path_of(folder, epoch)
    try:
        with safe_open(path, "numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise StoreError(
            f"{path}: missing or damaged ({error}); the run cannot go on without it: start it anew"
        ) from error
    if metadata.get("format") != FORMAT:
        raise StoreError(
            f"{path}: expected {FORMAT!r}, found {metadata.get('format')!r}; start the run anew"
        )
    kinds = {name: array.dtype for name, array in arrays.items()}
    if kinds != _KINDS or any(len(array) != n_lessons for array in arrays.values()):
        raise StoreError(f"{path}: does not belong to these mentions; start the run anew")
    return Candidates(**arrays)
