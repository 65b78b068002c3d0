"""Arrays in a safetensors file, by its published layout: the core needs no package for it.

Eight bytes give the length of a JSON header, which gives kind, shape and place of every array;
then the arrays follow. What is read is mapped into memory.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from biograft.runs import new_file

_KINDS = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U8": "|u1"}
_CODES = {np.dtype(kind): code for code, kind in _KINDS.items()}
_METADATA = "__metadata__"
_ALIGNMENT = 8


def write_tensors(
    path: Path, arrays: Mapping[str, npt.NDArray[Any]], metadata: Mapping[str, str] | None = None
) -> None:
    """Write arrays by name; the file appears when it is whole."""
    header: dict[str, Any] = {_METADATA: dict(metadata)} if metadata else {}
    place = 0
    for name, array in arrays.items():
        header[name] = {
            "dtype": _CODES[array.dtype.newbyteorder("=")],
            "shape": list(array.shape),
            "data_offsets": [place, place + array.nbytes],
        }
        place += array.nbytes
    text = json.dumps(header, ensure_ascii=False).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    with new_file(path, overwrite=True) as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for array in arrays.values():
            little = array.astype(array.dtype.newbyteorder("<"), copy=False)
            file.write(np.ascontiguousarray(little).reshape(-1).view(np.uint8).data)


def read_tensors(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Map the arrays of a file into memory; ``ValueError`` where it is damaged."""
    whole = np.memmap(path, np.uint8, "r")
    start = 8 + int.from_bytes(whole[:8].tobytes(), "little")
    header = json.loads(whole[8:start].tobytes())
    if not isinstance(header, dict):
        raise ValueError("its header is no table of arrays")
    return {
        name: _map(whole[start:], name, entry)
        for name, entry in header.items()
        if name != _METADATA
    }


def _map(data: npt.NDArray[np.uint8], name: str, entry: Any) -> npt.NDArray[Any]:
    try:
        first, last = entry["data_offsets"]
        kind, shape = np.dtype(_KINDS[entry["dtype"]]), tuple(entry["shape"])
        size = kind.itemsize * math.prod(shape)
    except (KeyError, TypeError) as error:
        raise ValueError(f"what it says of {name} cannot be read") from error
    if not 0 <= first <= last <= len(data) or last - first != size:
        raise ValueError(f"{name} is cut short")
    return np.ndarray(shape, kind, data, first)
