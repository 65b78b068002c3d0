"""The machine that this process runs on, as far as it matters for speed."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

_INSTRUCTIONS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_int8")
"""Instructions that decide how fast vectors are multiplied."""
_CPUINFO = Path("/proc/cpuinfo")


def describe_machine() -> dict[str, Any]:
    """Return processor, cores, Python, and the instructions that matter for speed."""
    info = _read_cpuinfo()
    flags = set(info.get("flags", info.get("Features", "")).split())
    return {
        "python": platform.python_version(),
        "processor": info.get("model name", platform.machine()),
        "n_cores": os.cpu_count(),
        "omp_threads": os.environ.get("OMP_NUM_THREADS", "not set"),
        "instructions": [name for name in _INSTRUCTIONS if name in flags],
        "bf16": not flags.isdisjoint({"avx512_bf16", "amx_bf16", "bf16"}),
    }


def _read_cpuinfo() -> dict[str, str]:
    """Read what Linux says of the first core; nothing on other systems."""
    try:
        lines = _CPUINFO.read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    pairs = (line.partition(":") for line in reversed(lines))
    return {key.strip(): value.strip() for key, _, value in pairs}
