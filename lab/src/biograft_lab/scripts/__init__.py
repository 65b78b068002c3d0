"""Programs that try to break biograft, or measure what no experiment does: fuzz, faults ...

Each runs in a clone of the repository as ``python -m biograft_lab.scripts.NAME``, and writes its
result as JSON. They use helpers of the benchmarks and of the tests, which are no packages.
"""

from __future__ import annotations

import sys

from biograft_lab.places import REPOSITORY

_HELPERS = ("benchmarks", "tests", "tests/unit", "lab/tests")

if not (REPOSITORY / "benchmarks").is_dir():
    raise SystemExit("error: these programs run in a clone of the repository of biograft")
sys.path[:0] = [str(REPOSITORY / folder) for folder in _HELPERS]
