"""The commit, the command and the peak memory of a benchmark run, for its result."""

from __future__ import annotations

import json
import re
import resource
import shlex
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

_PATH = re.compile(r"(?<![^=,])[^=,\s]*/[^=,\s]+")
"""A path, alone or as a value, also in a list of them."""


def peak_gib() -> float:
    """Return the peak memory of this process, which a small parent must have started."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2 ** (30 if sys.platform == "darwin" else 20)


def keep_part(path: Path | None, key: str, part: dict[str, Any]) -> None:
    """Put a part of a result, such as that of one command, into the file of the whole.

    A run that takes long can so be made in parts; the parts of earlier runs stay.
    """
    if path is None:
        return
    whole = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    facts = {name: value for name, value in part.items() if name != key}
    whole = {**whole, **facts, key: {**whole.get(key, {}), **part[key]}}
    path.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


def describe_command(script: str, arguments: Sequence[str]) -> str:
    """Return the command of a run; of paths, which differ between machines, only the names.

    ``script`` is a file of the benchmarks, or ``-m`` and a module.
    """
    shown = (_PATH.sub(lambda match: Path(match[0]).name, part) for part in arguments)
    what = script if script.startswith("-m ") else f"benchmarks/{script}"
    return " ".join(["python", what, *map(shlex.quote, shown)])


@cache
def describe_commit() -> str:
    """Return the commit of the code that this process runs."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
