"""Programs that try to break biograft, or measure what no experiment does: fuzz, faults ...

Each runs in a clone of the repository as ``python -m biograft_lab.scripts.NAME``, and writes its
result as JSON. They use helpers of the benchmarks and of the tests, which are no packages.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from biograft_lab.places import REPOSITORY

_HELPERS = ("benchmarks", "tests", "tests/unit", "lab/tests")

if not (REPOSITORY / "benchmarks").is_dir():
    raise SystemExit("error: these programs run in a clone of the repository of biograft")
sys.path[:0] = [str(REPOSITORY / folder) for folder in _HELPERS]


def facts() -> dict[str, Any]:
    """Return machine, commit and command of the script that runs."""
    from biograft.compute import describe_machine

    machine: Any = importlib.import_module("machine")
    script = f"-m biograft_lab.scripts.{Path(sys.argv[0]).stem}"
    return {
        "machine": describe_machine(),
        "commit": machine.describe_commit(),
        "command": machine.describe_command(script, sys.argv[1:]),
    }


def new_parser(docstring: str | None) -> argparse.ArgumentParser:
    """Return the parser of a script, with the options that all of them have."""
    options: Any = importlib.import_module("script_options")
    parser: argparse.ArgumentParser = options.start_parser(docstring)
    options.add_data(parser)
    parser.add_argument("--json", action="store_true", help="one line")
    return parser


def run(
    measure: Callable[[argparse.Namespace], dict[str, Any]], parser: argparse.ArgumentParser
) -> None:
    """Measure by the options of the command line, and print the result with its facts.

    Args:
        measure: Returns the result.
        parser: Parser of the options.
    """
    options: Any = importlib.import_module("script_options")

    def show(given: argparse.Namespace) -> None:
        result = {**measure(given), **facts()}
        print(json.dumps(result, ensure_ascii=False, indent=None if given.json else 1))

    options.run_with(show, parser.parse_args())
