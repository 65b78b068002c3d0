"""Open arrays of a folder and check what is in them; save arrays.

Loops compiled by numba look at no bound: a number out of range reads, or writes, memory that is
not theirs. A folder may be damaged, or made by others, so what such loops index with is
checked once when it is opened, in a pass over the file from its beginning to its end. All that
does not fit is a ``ValueError`` that names the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from tokenize import TokenError
from types import SimpleNamespace
from typing import IO, Any, Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Mode = Literal["r", "r+", "c"]

_FAULTS = (OSError, ValueError, TypeError, ArithmeticError, SyntaxError, TokenError)
"""Errors that numpy raises for foreign or damaged files."""


def open_array(path: Path, *kinds: type[np.generic], n_axes: int = 1, mode: Mode = "r") -> Array:
    """Map one array into memory, if its numbers are of one of these kinds."""
    try:
        with np.errstate(over="raise"):  # of sizes that no array can have
            array: Array = np.lib.format.open_memmap(path, mode=mode)
    except _FAULTS as error:
        raise ValueError(f"{path.name}: {' '.join(str(error).split())}") from error
    if array.dtype not in map(np.dtype, kinds) or array.ndim != n_axes:
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise ValueError(
            f"{path.name}: expected {n_axes} axes of {expected}, found {array.ndim} of "
            f"{array.dtype}"
        )
    if not (array.flags.c_contiguous and array.flags.aligned):
        raise ValueError(f"{path.name}: its numbers do not lie as they are written here")
    return array


def create_array(path: Path, kind: npt.DTypeLike, shape: tuple[int, ...]) -> Array:
    """Create an array on disk, mapped into memory for writing, with all its space reserved."""
    array: Array = np.lib.format.open_memmap(path, mode="w+", dtype=kind, shape=shape)
    with path.open("r+b") as file:
        reserve(file)
    return array


def reserve(file: IO[bytes]) -> None:
    """Reserve the space of a file of holes; a full disk is an ``OSError`` here.

    Later it would be a signal (SIGBUS), which ends the process where it writes to the mapped file.
    """
    if hasattr(os, "posix_fallocate") and (size := os.fstat(file.fileno()).st_size):
        os.posix_fallocate(file.fileno(), 0, size)


def save_array(path: Path, array: npt.ArrayLike) -> None:
    """Write one array, the bytes of ``np.save``; an error of the disk keeps its number.

    numpy writes to a file itself, and says of a full disk only how many numbers it has written.
    """
    with path.open("wb") as file:
        plain: Any = SimpleNamespace(write=file.write)
        np.lib.format.write_array(plain, np.asanyarray(array), allow_pickle=False)


def check_length(name: str, array: Array, *shape: int) -> None:
    """Refuse an array of another shape."""
    if array.shape != shape:
        raise ValueError(f"{name}: expected {_times(shape)} numbers, found {_times(array.shape)}")


def check_range(name: str, array: Array, low: float, high: float) -> None:
    """Refuse numbers below ``low`` or above ``high``, and NaN."""
    if not array.size:
        return
    first, last = array.min().item(), array.max().item()
    if not (low <= first and last <= high):
        raise ValueError(f"{name}: expected {low} to {high}, found {first} to {last}")


def check_ends(name: str, ends: Array, last: int, *, first: int = 0) -> None:
    """Refuse positions that do not ascend from ``first`` to ``last``."""
    check_outer_ends(name, ends, last, first=first)
    flat = ends.reshape(-1)
    if not bool((flat[1:] >= flat[:-1]).all()):
        raise ValueError(f"{name}: expected positions that never go back")


def check_outer_ends(name: str, ends: Array, last: int, *, first: int = 0) -> None:
    """Refuse positions of which the first and the last are others; those between are not read."""
    if not ends.size or (ends.flat[0], ends.flat[-1]) != (first, last):
        found = f"{ends.flat[0]} to {ends.flat[-1]}" if ends.size else "none"
        raise ValueError(f"{name}: expected positions from {first} to {last}, found {found}")


def _times(shape: Iterable[int]) -> str:
    return " x ".join(map(str, shape))
