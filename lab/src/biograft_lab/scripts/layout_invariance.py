"""Findings in notes of others in other layouts: how many variants change any, by kind.

The variants of ``biograft evaluate robustness`` of the notes that no rule was written with, English
diseases of MEDIC and Chinese notes with the built-in knowledge base. Equal variants count once.

    BIOGRAFT_DATA=... python -m biograft_lab.scripts.layout_invariance --variants 300
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from script_options import some_of

from biograft.evaluation.robustness import RobustnessConfig, evaluate_robustness
from biograft.text.documents import Document
from biograft_lab.scripts import new_parser, run
from biograft_lab.scripts.unseen_notes import STORES, linkers_and_notes


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measure the notes with each store, and print the result."""
    config = RobustnessConfig(variants=options.variants, seed=options.seed)
    result: dict[str, Any] = {}
    for name, linker, notes in linkers_and_notes(options):
        documents = [Document(str(n), note.text) for n, note in enumerate(notes)]
        result[name] = evaluate_robustness(linker, documents, config).to_json()
    return result


def main() -> None:
    """Measure, and print one JSON object."""
    parser = new_parser(__doc__)
    parser.add_argument("--variants", type=int, default=100, help="of each kind a note")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--stores", type=some_of(STORES), default=["medic", "chinese"])
    parser.add_argument("--folder", type=Path, help="keep the stores there")
    run(measure, parser)


if __name__ == "__main__":
    main()
