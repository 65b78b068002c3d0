"""Where files are: the results that come with this package, a clone, the shared data."""

from __future__ import annotations

import os
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
"""The published results of experiments and of ``biograft_lab.scripts``."""
REPOSITORY = Path(__file__).parents[3]
"""A clone of the repository, if this package is installed from one."""
BENCHMARKS = REPOSITORY / "benchmarks" / "results"
"""The published results of the benchmarks of speed and memory, in a clone."""
DOCS = REPOSITORY / "docs"
LAB_DOCS = REPOSITORY / "lab" / "docs"


def data_folder() -> Path:
    """Return the folder of real data: BIOGRAFT_DATA, or ``shared/data`` beside a clone."""
    return Path(os.environ.get("BIOGRAFT_DATA") or REPOSITORY.parent / "shared" / "data")
