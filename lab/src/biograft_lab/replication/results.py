"""Result files of experiments, and the facts about machine and code that they record.

A file holds rows, each with the settings that identify it. It is whole at any time: a row is
written as soon as it is measured, so a stopped run continues with the rows that are missing.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from biograft.artifacts import new_file, sole_writer
from biograft.compute import describe_machine
from biograft.errors import InputError

Row = dict[str, Any]


class ResultFile:
    """The rows of an experiment so far."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[Row] = self._read()

    def _read(self) -> list[Row]:
        rows: list[Row] = read_result(self.path)["rows"] if self.path.exists() else []
        return rows

    def has(self, key: Mapping[str, Any]) -> bool:
        """Return whether a row of these settings exists."""
        return any(_matches(row, key) for row in self.rows)

    def add(self, key: Mapping[str, Any], result: Row) -> Row:
        """Write a row, replacing an earlier one of the same settings.

        The file is read again first, because another run may have added to it.
        """
        row = {**key, **result}
        with sole_writer(self.path, wait=True):
            self.rows = [other for other in self._read() if not _matches(other, key)]
            self.rows.append(row)
            write_result(
                self.path, {"machine": describe_machine(), "unit": "percent", "rows": self.rows}
            )
        return row


def _matches(row: Row, key: Mapping[str, Any]) -> bool:
    return all(row.get(name) == value for name, value in key.items())


def read_result(path: Path) -> dict[str, Any]:
    """Read a result file."""
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read as a result file ({error})", path=path) from error
    return content


def write_result(path: Path, content: Mapping[str, Any]) -> None:
    """Write a result file, replacing an earlier one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with new_file(path, overwrite=True) as file:
        file.write(f"{{{','.join(map(_part, content.items()))}\n}}\n".encode())


def _part(item: tuple[str, Any]) -> str:
    """Write a key; of a list, such as the rows, each item has a line, so that changes are seen."""
    key, value = item
    if isinstance(value, list) and value:
        lines = ",\n".join(f"  {_compact(each)}" for each in value)
        return f"\n {_compact(key)}: [\n{lines}\n ]"
    return f"\n {_compact(key)}: {_compact(value)}"


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)  # without indentation it is compiled, not Python


def pack_flags(flags: Iterable[bool]) -> str:
    """Write which items were answered rightly, one digit an item.

    >>> pack_flags([True, False, True])
    '101'
    """
    return "".join("1" if flag else "0" for flag in flags)


def pack_sizes(sizes: Iterable[int]) -> str:
    """Write the number of items of each document.

    >>> pack_sizes([2, 1])
    '2 1'
    """
    return " ".join(map(str, sizes))


def unpack_flags(packed: str) -> npt.NDArray[np.float64]:
    """Read what ``pack_flags`` wrote, 1 where the answer is right.

    >>> unpack_flags("101").tolist()
    [1.0, 0.0, 1.0]
    """
    return np.asarray(np.frombuffer(packed.encode(), np.uint8) == ord("1"), np.float64)


def without_fold(name: str) -> str:
    """Return the name of a set without the number of its fold: NAME-0, NAME-1, ...

    >>> without_fold("askapatient-3")
    'askapatient'
    """
    return re.sub(r"-\d$", "", name)


@cache
def describe_commit() -> str:
    """Return the commit of the code that this process runs; empty outside a clone."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()
