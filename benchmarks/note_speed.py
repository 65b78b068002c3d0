"""Speed of linking whole texts: what abbreviations, misspelt names and assertions cost.

The abstracts of BC5CDR dev are linked with the published dictionary of diseases, lexical search in
memory. Each variant runs in turn, several times, so that a busy machine slows all; the forms are in
the cache of the linker, as in a stream of notes. ``ratio`` is the speed over that of names alone.

    BIOGRAFT_DATA=... python benchmarks/note_speed.py --json
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from diseases import open_diseases, read_abstracts
from machine import describe_command, describe_commit
from script_options import add_data, run_with, start_parser

from biograft.compute import describe_machine
from biograft.config import from_mapping
from biograft.linking import Linker, LinkerConfig
from biograft.linking.fusion import FusedSearch
from biograft.linking.lexical import LexicalIndex

OFF = {"misspelt": False, "abbreviations": False, "composites": False, "assertions": False}
VARIANTS: dict[str, dict[str, bool]] = {
    "names": OFF,
    "misspelt": {**OFF, "misspelt": True},
    "abbreviations": {**OFF, "abbreviations": True},
    "composites": {**OFF, "composites": True},
    "assertions": {**OFF, "assertions": True},
    "everything": {},
}


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Time each variant, one after the other in each round."""
    with tempfile.TemporaryDirectory() as work:
        kb = open_diseases(options.data, Path(work))
        search = FusedSearch([LexicalIndex.build(kb)])
        documents = [replace(each, mentions=()) for each in read_abstracts(options.data)]
        linkers = {
            name: Linker(kb, search, config=from_mapping(LinkerConfig, settings))
            for name, settings in VARIANTS.items()
        }
        seconds: dict[str, list[float]] = {name: [] for name in linkers}
        for turn in range(options.rounds + 1):
            for name, linker in linkers.items():
                start = time.perf_counter()
                for _ in linker.pipe(documents):
                    pass
                if turn:  # the first fills the caches
                    seconds[name].append(time.perf_counter() - start)
    size = sum(len(document.text) for document in documents) / 1e6
    plain = median(seconds["names"])
    return {
        "variants": {
            name: {
                "mb_per_second": round(size / median(times), 3),
                "ratio": round(plain / median(times), 3),
            }
            for name, times in seconds.items()
        },
        "documents": len(documents),
        "machine": describe_machine(),
        "commit": describe_commit(),
        "command": describe_command("note_speed.py", sys.argv[1:]),
    }


def main() -> None:
    """Measure, and print one JSON object."""
    parser = start_parser(__doc__)
    add_data(parser)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_const", dest="rounds", const=2)
    parser.add_argument("--json", action="store_true")
    run_with(lambda given: print(json.dumps(measure(given))), parser.parse_args())


if __name__ == "__main__":
    main()
