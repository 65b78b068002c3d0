"""What a probe finds, of several stores or texts, in one result file.

What follows `--` is the command line of the probe, asked for JSON. Its answer is added to --out
under --name; texts of sentences are left out. A finished name is asked anew.

    python benchmarks/probes.py --out benchmarks/results/similar_names.json --name Chinese
        -- similarity --kb KB --corpus CORPUS --baseline letters --encoder start=RUN/encoder
    python benchmarks/probes.py --out benchmarks/results/attention_change.json --name English
        -- attention --file CORPUS --kb KB --replace --encoder RUN/encoder
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from command_line import run_with, start_parser
from machine import describe_command, describe_commit, describe_machine

from biograft.artifacts import new_file
from biograft.errors import ConfigError

_LEFT_OUT = ("sentences", "queries")
"""Parts of an answer that repeat what was read."""


def run(options: argparse.Namespace) -> None:
    """Ask, and put the answer beside the others of the file."""
    command = [sys.executable, "-m", "biograft", "probe", *options.probe, "--json", "--quiet"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise ConfigError(f"the probe failed with {done.returncode}: {' '.join(options.probe)}")
    answer = {key: of for key, of in json.loads(done.stdout).items() if key not in _LEFT_OUT}
    content = add(_read(options.out), options.name, answer, options.probe)
    with new_file(options.out, overwrite=True) as file:
        file.write((json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode())


def add(
    content: dict[str, Any], name: str, answer: dict[str, Any], probe: list[str]
) -> dict[str, Any]:
    """Put an answer into what a file holds, with how it was come by."""
    about = {"command": describe_command("probes.py", ["--name", name, "--", *probe])}
    told = {**answer, **about, "commit": describe_commit()}
    asked = {**content.get("asked", {}), name: told}
    return {"machine": describe_machine(), "asked": asked}


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def main() -> None:
    """Read the command line and run."""
    parser = start_parser(__doc__)
    parser.add_argument("--out", type=Path, required=True, help="file of results")
    parser.add_argument("--name", required=True, help="what is asked: a store, a text")
    parser.add_argument("probe", nargs="+", help="-- and the probe's own command line")
    run_with(run, parser.parse_args())


if __name__ == "__main__":
    main()
