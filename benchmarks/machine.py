"""What a benchmark says about the machine and the code it ran on."""

from __future__ import annotations

import os
import platform
import re
import resource
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_TOLD = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_int8")
"""Instructions that decide how fast vectors are multiplied."""
_PROCESSOR = Path("/proc/cpuinfo")
_PLACE = re.compile(r"(?<![^=,])[^=,\s]*/[^=,\s]+")
"""A path, alone or as a value, also in a list of them."""


def describe_machine() -> dict[str, Any]:
    """Name processor, cores, Python, and the instructions that matter here."""
    told = _read_processor()
    flags = set(told.get("flags", told.get("Features", "")).split())
    return {
        "python": platform.python_version(),
        "processor": told.get("model name", platform.machine()),
        "n_cores": os.cpu_count(),
        "omp_threads": os.environ.get("OMP_NUM_THREADS", "not set"),
        "instructions": [name for name in _TOLD if name in flags],
        "bf16": not flags.isdisjoint({"avx512_bf16", "amx_bf16", "bf16"}),
    }


def _read_processor() -> dict[str, str]:
    """Read what Linux says of the first core; nothing on other systems."""
    try:
        lines = _PROCESSOR.read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    pairs = (line.partition(":") for line in reversed(lines))
    return {key.strip(): value.strip() for key, _, value in pairs}


def describe_commit() -> str:
    """Name the commit that was measured; empty outside a clone."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()


def peak_gib() -> float:
    """Give the peak memory of this process, started as one of its own by a small parent."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2 ** (30 if sys.platform == "darwin" else 20)


def describe_command(script: str, arguments: Sequence[str]) -> str:
    """Give the command that was run; of places, which are another's elsewhere, only the names."""
    shown = (_PLACE.sub(lambda found: Path(found[0]).name, part) for part in arguments)
    return " ".join(["python", f"benchmarks/{script}", *map(shlex.quote, shown)])
