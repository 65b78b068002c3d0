"""Findings in running text, end to end: mentions found and linked, against the gold annotation.

F1 of spans, of mentions (span and concept) and of documents (concepts), with intervals over
documents, by lexical search over the published dictionary of each set, for what the linker may do:

names       names of the store in text, by normal forms, and nothing else
context     short forms, coordinations, agreement, NIL by default
misspelt    the same with misspelt names
reworded    the same with re-worded names, too
model, both a trained model finds the mentions, or both do (with --ner)

    BIOGRAFT_DATA=... python -m biograft_lab.scripts.text_linking --splits test --json
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from machine import describe_command, describe_commit
from script_options import add_data, run_with, some_of, start_parser

from biograft.compute import describe_machine
from biograft.linking import Linker, LinkerConfig
from biograft.linking.detection import open_detector
from biograft.linking.fusion import FusedSearch
from biograft_lab.replication.protocols import LinkingTask, open_lexical_index

SPLITS = ("dev", "test")
SETS = ("ncbi-disease", "bc5cdr-disease", "bc5cdr-chemical")
PLAIN = {
    "misspelt": False,
    "reworded": False,
    "short_forms": False,
    "coordinations": False,
    "threshold": 0.0,
}
VARIANTS: dict[str, dict[str, Any]] = {
    "names": PLAIN,
    "context": {"misspelt": False, "reworded": False},
    "misspelt": {"reworded": False},
    "reworded": {"reworded": True},
    "model": {"detection": "model"},
    "both": {"detection": "both"},
}
_TRAINED = ("model", "both")


def measure(options: argparse.Namespace) -> None:
    """Measure each set by each variant, and print the result."""
    splits: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as work:
        for split in options.splits:
            splits[split] = {
                name: _measure_set(name, split, Path(work), options) for name in options.sets
            }
    result = {
        "splits": splits,
        "machine": describe_machine(),
        "commit": describe_commit(),
        "command": describe_command("-m biograft_lab.scripts.text_linking", sys.argv[1:]),
    }
    print(json.dumps(result) if options.json else json.dumps(result, indent=1))


def _measure_set(name: str, split: str, work: Path, options: argparse.Namespace) -> dict[str, Any]:
    task = LinkingTask(set=name, protocol="text", split=split)
    kb = task.open_store(options.data, work)
    search = FusedSearch([open_lexical_index(task.folder(work), kb)])
    types = task.chosen.config.types
    found: dict[str, Any] = {}
    for variant, settings in VARIANTS.items():
        if variant in _TRAINED and options.ner is None:
            continue
        config = LinkerConfig(**settings, mention_types=types if variant in _TRAINED else ())
        detector = open_detector(options.ner, config) if variant in _TRAINED else None
        started = time.process_time()
        row = task.measure(Linker(kb, search, detector=detector, config=config), options.data, work)
        found[variant] = {**row, "processor_seconds": time.process_time() - started}
    return found


def _parse() -> argparse.Namespace:
    parser = start_parser(__doc__)
    parser.add_argument("--sets", type=some_of(SETS), default=list(SETS), help="some of the sets")
    parser.add_argument(
        "--splits", type=some_of(SPLITS), default=list(SPLITS), help="which texts: dev,test"
    )
    parser.add_argument("--ner", type=Path, help="run of `biograft finetune ner`")
    parser.add_argument("--folder", help="where to put files while it runs")
    parser.add_argument("--json", action="store_true", help="one line")
    add_data(parser)
    return parser.parse_args()


if __name__ == "__main__":
    run_with(measure, _parse())
