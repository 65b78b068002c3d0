"""Findings in notes of others in other layouts: how many variants change any, by kind.

The variants of ``biograft evaluate robustness`` of the notes that no rule was written with, English
diseases of MEDIC and Chinese notes with the built-in knowledge base. Equal variants count once.

    BIOGRAFT_DATA=... python -m biograft_lab.scripts.layout_invariance --variants 300
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from machine import describe_command, describe_commit
from script_options import add_data, run_with, some_of, start_parser

from biograft.compute import describe_machine
from biograft.evaluation.robustness import RobustnessConfig, evaluate_robustness
from biograft.text.documents import Document
from biograft_lab.scripts.unseen_notes import STORES, linkers_and_notes


def measure(options: argparse.Namespace) -> None:
    """Measure the notes with each store, and print the result."""
    config = RobustnessConfig(variants=options.variants, seed=options.seed)
    result: dict[str, Any] = {}
    for name, linker, notes in linkers_and_notes(options):
        documents = [Document(str(n), note.text) for n, note in enumerate(notes)]
        result[name] = evaluate_robustness(linker, documents, config).to_json()
    result |= {
        "machine": describe_machine(),
        "commit": describe_commit(),
        "command": describe_command("-m biograft_lab.scripts.layout_invariance", sys.argv[1:]),
    }
    print(json.dumps(result, indent=1))


def main() -> None:
    """Measure, and print one JSON object."""
    parser = start_parser(__doc__)
    parser.add_argument("--variants", type=int, default=100, help="of each kind a note")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--stores", type=some_of(STORES), default=["medic", "chinese"])
    parser.add_argument("--folder", type=Path, help="keep the stores there")
    add_data(parser)
    run_with(measure, parser.parse_args())


if __name__ == "__main__":
    main()
