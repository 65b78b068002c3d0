"""Types of numpy arrays, named by what they hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Int16s = npt.NDArray[np.int16]
Int32s = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]
Uints = npt.NDArray[np.uint32]
Uint64s = npt.NDArray[np.uint64]
Float32s = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]
