"""Pairs from a text file: a line ``id||name||name`` each, as published training files have them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from biograft.errors import EncodingError, FormatError, InputError

_BATCH = 1 << 16


def read_pair_file(
    path: Path, label: Callable[[str], int]
) -> tuple[pa.ChunkedArray, npt.NDArray[np.int64]]:
    """Give the names (rows 2k and 2k + 1 are pair k) and the label of each pair."""
    texts, labels = [], []
    lines = _lines(path)
    while batch := list(islice(lines, _BATCH)):
        texts.append(pa.array([name for _, *names in batch for name in names], pa.large_string()))
        labels.append(np.array([label(identifier) for identifier, *_ in batch], np.int64))
    if not labels:
        raise InputError("holds no pairs", path=path, remedy="expected lines id||name||name")
    return pa.chunked_array(texts), np.concatenate(labels)


def _lines(path: Path) -> Iterator[tuple[str, str, str]]:
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                parts = [part.strip() for part in line.split("||")]
                if parts == [""]:
                    continue
                if len(parts) != 3 or not all(parts):
                    raise FormatError(
                        "expected id||name||name", path=path, line=number, text=line.strip()
                    )
                yield parts[0], parts[1], parts[2]
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", path=path) from error
    except UnicodeDecodeError as error:
        raise EncodingError(f"is not UTF-8 ({error.reason})", path=path) from error
