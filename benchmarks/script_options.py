"""Options and errors that the command lines of the benchmarks share."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from biograft.errors import BiograftError

DATA = Path(os.environ.get("BIOGRAFT_DATA") or Path(__file__).parents[2] / "shared" / "data")
"""The folder of real data, which lies beside a clone unless the environment names another."""


def start_parser(docstring: str | None) -> argparse.ArgumentParser:
    """Return a parser that describes a script by the first line of its docstring."""
    return argparse.ArgumentParser(description=(docstring or "").partition("\n")[0])


def add_data(parser: argparse.ArgumentParser) -> None:
    """Add the option of the folder of real data."""
    help_text = "folder of real data; default: BIOGRAFT_DATA"
    parser.add_argument("--data", type=Path, default=DATA, help=help_text)


def some_of(known: Collection[str]) -> Callable[[str], list[str]]:
    """Return the parser of a list of some known names."""

    def parse(text: str) -> list[str]:
        chosen = [name for name in text.split(",") if name]
        if not chosen or not set(chosen) <= set(known):
            raise argparse.ArgumentTypeError(f"expected some of {', '.join(known)}, found {text!r}")
        return chosen

    return parse


def add_load_options(parser: argparse.ArgumentParser, quick: str) -> None:
    """Add the options of a load on services."""
    parser.add_argument("--workers", type=int, default=2, help="processes of each service")
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--json", action="store_true", help="print one JSON object last")
    parser.add_argument(
        "--markdown", type=Path, metavar="RESULT", help="print the table of a result"
    )


def measured_or_read(
    measure: Callable[[argparse.Namespace], Any],
    markdown: Callable[[Any], str],
    options: argparse.Namespace,
) -> None:
    """Measure and print, or print the table of a result file."""
    if options.markdown:
        print(markdown(json.loads(options.markdown.read_text(encoding="utf-8"))))
        return
    result = measure(options)
    print(json.dumps(result) if options.json else markdown(result))


def run_with(run: Callable[[argparse.Namespace], None], options: argparse.Namespace) -> None:
    """Run a script with its options; an error is one line."""
    try:
        run(options)
    except BiograftError as error:
        raise SystemExit(f"error: {error}") from error
