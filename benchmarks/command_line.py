"""What the command lines of the benchmarks share: places, lists of names, errors in one line."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Collection
from pathlib import Path

from biograft.errors import BiograftError

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"


def start_parser(told: str | None) -> argparse.ArgumentParser:
    """Make a parser that tells the first line of a script's docstring."""
    return argparse.ArgumentParser(description=(told or "").partition("\n")[0])


def add_data(parser: argparse.ArgumentParser) -> None:
    """Add the option that says where real data are."""
    data = Path(os.environ.get("BIOGRAFT_DATA") or ROOT.parent / "shared" / "data")
    told = "folder of real data; default: BIOGRAFT_DATA"
    parser.add_argument("--data", type=Path, default=data, help=told)


def some_of(known: Collection[str]) -> Callable[[str], list[str]]:
    """Make the parser of a list of some known names."""

    def parse(text: str) -> list[str]:
        chosen = [name for name in text.split(",") if name]
        if not chosen or not set(chosen) <= set(known):
            raise argparse.ArgumentTypeError(f"expected some of {', '.join(known)}, found {text!r}")
        return chosen

    return parse


def seeds(text: str) -> list[int]:
    """Parse a list of seeds."""
    return [int(seed) for seed in text.split(",")]


def run_with(run: Callable[[argparse.Namespace], None], options: argparse.Namespace) -> None:
    """Run a script with its options; an error is one line."""
    try:
        run(options)
    except BiograftError as error:
        raise SystemExit(f"error: {error}") from error
