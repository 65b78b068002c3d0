"""A .npy file that grows: rows are added at its end, and memory holds few of them."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt


class GrowingArray:
    """Writes rows as they come; the file is a whole .npy once the block ends."""

    def __init__(self, path: Path, dtype: type[np.integer], width: int = 0) -> None:
        self.n_rows, self._width = 0, width
        self._dtype: np.dtype[np.integer] = np.dtype(dtype)
        self._file = path.open("wb")
        self._write_header()

    def __enter__(self) -> GrowingArray:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._file.seek(0)
                self._write_header()
        finally:
            self._file.close()

    def add(self, rows: npt.NDArray[np.integer]) -> None:
        """Add rows."""
        self._file.write(np.ascontiguousarray(rows, self._dtype).tobytes())
        self.n_rows += len(rows)

    def _write_header(self) -> None:
        """Write the header, which numpy makes equally long whatever the number of rows."""
        shape = (self.n_rows, self._width) if self._width else (self.n_rows,)
        described = {
            "descr": np.lib.format.dtype_to_descr(self._dtype),
            "fortran_order": False,
            "shape": shape,
        }
        np.lib.format.write_array_header_1_0(self._file, described)
