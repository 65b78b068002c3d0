"""Where files are: results, a clone, the shared data; and how modules are run from a shell."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from biograft.cli.fields import CommandGroup

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


def run_commands(app: CommandGroup) -> None:
    """Run the commands of a module; an error is one line."""
    from biograft.errors import BiograftError

    try:
        app()
    except BiograftError as error:
        raise SystemExit(f"error: {error}") from error
