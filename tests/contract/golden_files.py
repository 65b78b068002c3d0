"""Golden files: what the product answered, row by row, and how an answer differs from it.

A file ``golden/<file>.json`` has one row a line: a name, and any JSON value. Keys, lengths, texts
and whole numbers are compared exactly, other numbers to 1e-4 (relative above 1). What cannot be
the same twice is scrubbed before: paths below the folders of a test, times, versions.

Golden files change only by ``make golden``, which prints every difference, then writes. The commit
says which piece of work allows the change.
"""

from __future__ import annotations

import json
import math
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import biograft

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"
KNOWN_WRONG = HERE / "known_wrong.toml"
TOLERANCE = 1e-4
_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+\d\d:\d\d)?)?")
_HASH = re.compile(r"\b([0-9a-f]{16,64}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})\b")
_TOOL = re.compile(rf"\bbiograft {re.escape(biograft.__version__)}")
ANY = "<any>"


def scrub(value: Any, folders: Mapping[str, str] = {}, volatile: Iterable[str] = ()) -> Any:
    """Make a value comparable between runs and machines.

    Args:
        value: Whatever JSON can hold; tuples become lists.
        folders: Texts (paths of folders) and what stands for them.
        volatile: Keys whose values are replaced by ``<any>``.

    Returns:
        The value with folders, times and hashes replaced.
    """
    volatile = frozenset(volatile)
    if isinstance(value, Mapping):
        return {
            scrub(str(key), folders): ANY if key in volatile else scrub(item, folders, volatile)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [scrub(item, folders, volatile) for item in value]
    if isinstance(value, os.PathLike):
        value = str(value)
    if not isinstance(value, str):
        return value.item() if hasattr(value, "item") else value
    for folder, name in sorted(folders.items(), key=lambda pair: -len(pair[0])):
        value = value.replace(folder, name)
    return _HASH.sub("<hash>", _TIME.sub("<time>", _TOOL.sub("biograft <version>", value)))


def differences(golden: Any, value: Any, at: str = "") -> Iterator[str]:
    """Describe in one line each how a value differs from the golden one.

    Args:
        golden: What is stored.
        value: What the product gives now.
        at: Where both stand, for the messages.

    Yields:
        ``place: stored -> now``.
    """
    if isinstance(golden, dict) and isinstance(value, dict):
        for key in golden.keys() - value.keys():
            yield f"{at}.{key}: {_short(golden[key])} -> gone"
        for key in value.keys() - golden.keys():
            yield f"{at}.{key}: new {_short(value[key])}"
        for key in golden:
            if key in value:
                yield from differences(golden[key], value[key], f"{at}.{key}")
    elif isinstance(golden, list) and isinstance(value, list):
        if len(golden) != len(value):
            yield f"{at}: {len(golden)} -> {len(value)} items"
        for row, (old, new) in enumerate(zip(golden, value, strict=False)):
            yield from differences(old, new, f"{at}[{row}]")
    elif not _equal(golden, value):
        yield f"{at}: {_short(golden)} -> {_short(value)}"


def _equal(golden: Any, value: Any) -> bool:
    numbers = all(isinstance(x, int | float) and not isinstance(x, bool) for x in (golden, value))
    if numbers and (isinstance(golden, float) or isinstance(value, float)):
        both_nan = math.isnan(golden) and math.isnan(value)
        return both_nan or math.isclose(golden, value, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return type(golden) is type(value) and golden == value


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 120 else f"{text[:117]}..."


@dataclass
class GoldenFiles:
    """All golden files of a run, read when first asked for.

    Attributes:
        update: Whether a different or new row replaces the stored one, instead of failing.
        changed: The differences found while updating, in order.
    """

    update: bool = False
    changed: list[str] = field(default_factory=list)
    _rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    _seen: dict[str, set[str]] = field(default_factory=dict)

    def check(self, file: str, row: str, value: Any) -> None:
        """Compare a value with its row; a difference fails the test, or is noted for writing.

        Args:
            file: The name of the golden file, without ``.json``.
            row: The name of the row, unique in the file.
            value: What the product gives now (see :func:`scrub`).
        """
        value = json.loads(json.dumps(_round(value)))
        rows, seen = self.rows(file), self._seen.setdefault(file, set())
        assert row not in seen, f"the golden row {row!r} of {file} is checked twice"
        seen.add(row)
        found = list(differences(rows[row], value)) if row in rows else ["new row"]
        if not found:
            return
        known = next((k for k in known_wrong() if k["file"] == file and matches(k, row)), None)
        if self.update:
            if known:
                found.append("known wrong: if it is right now, take it out of known_wrong.toml")
            self.changed += [f"{file}: {row}: {line}" for line in found]
            rows[row] = value
            return
        shown = "\n  ".join(found[:20])
        note = f"\nknown wrong ({known['subject']}): {known['why']}" if known else ""
        raise AssertionError(f"golden {file}: {row} differs (`make golden`):\n  {shown}{note}")

    def rows(self, file: str) -> dict[str, Any]:
        """Return the rows of a golden file; none if there is no such file."""
        if file not in self._rows:
            path = GOLDEN / f"{file}.json"
            self._rows[file] = json.loads(path.read_text("utf-8")) if path.exists() else {}
        return self._rows[file]

    def write(self, prune: bool = False) -> None:
        """Write what changed.

        Args:
            prune: Whether rows that no test asked for are deleted; only after a complete run.
        """
        if prune:
            for path in sorted(GOLDEN.glob("*.json")):
                for row in self.rows(path.stem).keys() - self._seen.get(path.stem, set()):
                    del self.rows(path.stem)[row]
                    self.changed.append(f"{path.stem}: {row}: no test asks for it: deleted")
        for file in {line.partition(":")[0] for line in self.changed}:
            lines = [
                f"{json.dumps(row, ensure_ascii=False)}: {json.dumps(value, ensure_ascii=False)}"
                for row, value in sorted(self._rows[file].items())
            ]
            path = GOLDEN / f"{file}.json"
            path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
            if not lines:
                path.unlink()


def _round(value: Any) -> Any:
    """Cut floats to seven digits, which keeps the files short."""
    if isinstance(value, dict):
        return {key: _round(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_round(item) for item in value]
    return float(f"{value:.7g}") if isinstance(value, float) else value


def known_wrong() -> list[dict[str, str]]:
    """Read the golden rows that are known to be wrong, each with its reason."""
    rows: list[dict[str, str]] = tomllib.loads(KNOWN_WRONG.read_text("utf-8")).get("row", [])
    return rows


def matches(known: Mapping[str, str], row: str) -> bool:
    """Return True if an entry of ``known_wrong.toml`` is about a row; ``*`` stands for any text."""
    return fnmatchcase(row, known["row"])
