"""A result file of rows: each is written when it is there, so that a stopped script goes on."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from machine import describe_machine

from biograft.artifacts import new_file


class Results:
    """The results so far, in one file that is whole at any time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[dict[str, Any]] = self._read()

    def _read(self) -> list[dict[str, Any]]:
        if not self.path.exists():
            return []
        rows: list[dict[str, Any]] = json.loads(self.path.read_text(encoding="utf-8"))["rows"]
        return rows

    def has(self, key: Mapping[str, Any]) -> bool:
        """Whether a result is there already."""
        return any(_is_of(row, key) for row in self.rows)

    def add(self, key: Mapping[str, Any], result: dict[str, Any]) -> None:
        """Put a result in, in place of an earlier one of the same key.

        The file is read again first: another run may have added to it.
        """
        self.rows = [row for row in self._read() if not _is_of(row, key)]
        self.rows.append({**key, **result})
        content = {"machine": describe_machine(), "unit": "percent", "rows": self.rows}
        with new_file(self.path, overwrite=True) as file:
            file.write((json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode())


def without_fold(name: str) -> str:
    """Take the number of a fold off the name of a set that has several: NAME-0, NAME-1, ..."""
    return re.sub(r"-\d$", "", name)


def _is_of(row: dict[str, Any], key: Mapping[str, Any]) -> bool:
    return all(row.get(name) == value for name, value in key.items())
