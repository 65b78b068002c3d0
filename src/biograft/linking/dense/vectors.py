"""Vectors on disk: plain ``.npy`` files, memory-mapped, in four sizes.

``vectors.npy`` holds a row a vector; bfloat16, which numpy does not know, as the 16 bits that
they are. With int8, ``scales.npy`` holds the number that each row is to be multiplied by.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt
import torch

from biograft.arrays.files import Mode, check_length, open_array
from biograft.linking.dense.manifest import DENSE_INDEX

VECTORS, SCALES = "vectors.npy", "scales.npy"
CHUNK = 8192
"""Rows worked on at once; a product with some hundred queries then stays within the caches."""
_KEPT_AS: dict[str, type[np.generic]] = {
    "float32": np.float32,
    "float16": np.float16,
    "bfloat16": np.uint16,
    "int8": np.int8,
}
_LARGEST_INT8 = 127

Vectors = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]


class VectorTable:
    """The vectors of an index, rows of equal length."""

    def __init__(self, storage: str, kept: npt.NDArray[np.generic], scales: Vectors | None) -> None:
        self.storage, self._kept, self._scales = storage, kept, scales
        self.n_rows, self.dim = kept.shape

    @classmethod
    def create(cls, folder: Path, storage: str, n_rows: int, dim: int) -> VectorTable:
        """Make the files for so many vectors, to be written in any order."""
        new = np.lib.format.open_memmap
        kept = new(folder / VECTORS, mode="w+", dtype=_KEPT_AS[storage], shape=(n_rows, dim))
        scales = None
        if storage == "int8":
            scales = new(folder / SCALES, mode="w+", dtype=np.float32, shape=(n_rows,))
        return cls(storage, kept, scales)

    @classmethod
    def open(cls, folder: Path, storage: str, *, writable: bool = False) -> VectorTable:
        """Map the files of a folder into memory."""
        # "c" shares the pages of the file too; torch warns of arrays that it could not write to
        mode: Mode = "r+" if writable else "c"
        kept = load_array(folder / VECTORS, _KEPT_AS[storage], n_axes=2, mode=mode)
        scales = None
        if storage == "int8":
            scales = cast("Vectors", load_array(folder / SCALES, np.float32, mode=mode))
            try:
                check_length("scales", scales, len(kept))
            except ValueError as error:
                raise DENSE_INDEX.damaged(folder, error) from error
        return cls(storage, kept, scales)

    def write(self, rows: Rows, vectors: Vectors) -> None:
        """Put vectors into rows."""
        if self.storage == "bfloat16":
            halves = torch.from_numpy(vectors).to(torch.bfloat16)
            self._kept[rows] = halves.view(torch.int16).numpy().view(np.uint16)
        elif self._scales is not None:
            largest = np.abs(vectors).max(axis=1, initial=0)
            scales = np.maximum(largest, np.finfo(np.float32).tiny) / _LARGEST_INT8
            self._kept[rows] = np.rint(vectors / scales[:, None]).astype(np.int8)
            self._scales[rows] = scales
        else:
            self._kept[rows] = vectors

    def copy(self, rows: Rows, other: VectorTable, other_rows: Rows) -> None:
        """Put rows of another table of the same storage into rows, bit for bit."""
        self._kept[rows] = other._kept[other_rows]
        if self._scales is not None and other._scales is not None:
            self._scales[rows] = other._scales[other_rows]

    def flush(self) -> None:
        """See that everything written so far is on disk."""
        for array in (self._kept, self._scales):
            if isinstance(array, np.memmap):
                array.flush()

    def chunk(self, start: int, stop: int) -> torch.Tensor:
        """Give neighbouring rows: (stop - start, dim), 32 bits."""
        rows = slice(start, stop)
        return self._decode(self._kept[rows], None if self._scales is None else self._scales[rows])

    def take(self, rows: Rows) -> Vectors:
        """Give any rows: (rows, dim), 32 bits; the same numbers as ``chunk``."""
        scales = None if self._scales is None else self._scales[rows]
        return self._decode(self._kept[rows], scales).numpy()

    def largest_norm(self) -> float:
        """Measure the longest vector, as it is kept."""
        norms = [
            float(torch.linalg.vector_norm(self.chunk(start, start + CHUNK), dim=1).max())
            for start in range(0, self.n_rows, CHUNK)
        ]
        return max(norms, default=0.0)

    def _decode(self, kept: npt.NDArray[np.generic], scales: Vectors | None) -> torch.Tensor:
        if self.storage == "bfloat16":
            return torch.from_numpy(kept.view(np.int16)).view(torch.bfloat16).float()
        decoded = torch.from_numpy(kept).float()
        return decoded if scales is None else decoded * torch.from_numpy(scales)[:, None]


def load_array(
    path: Path, kind: type[np.generic], *, n_axes: int = 1, mode: Mode = "c"
) -> npt.NDArray[np.generic]:
    """Map one ``.npy`` file into memory, refusing what is damaged or of another kind."""
    try:
        return open_array(path, kind, n_axes=n_axes, mode=mode)
    except ValueError as error:
        raise DENSE_INDEX.damaged(path.parent, error) from error
