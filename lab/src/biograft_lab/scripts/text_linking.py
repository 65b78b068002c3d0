"""Findings in running text, end to end: mentions found and linked, against the gold annotation.

F1 of spans, of mentions (span and concept) and of documents (concepts), with intervals over
documents, by lexical search over the published dictionary of each set, which has the mentions of
earlier splits as names, or (``--source``) over an ontology alone, for what the linker may do:

names       names of the store in text, by normal forms, and nothing else
context     short forms, coordinations, agreement, NIL by default
misspelt    the same with misspelt names
reworded    the same with re-worded names, too
model, both a trained model finds the mentions, or both do (with --ner)

    BIOGRAFT_DATA=... python -m biograft_lab.scripts.text_linking --splits test --json
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from script_options import some_of

from biograft.evaluation import evaluate_text
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.linking import Linker, LinkerConfig
from biograft.linking.detection import open_detector
from biograft.linking.fusion import FusedSearch
from biograft.linking.lexical.index import LexicalIndex
from biograft_lab.replication.protocols import (
    LinkingTask,
    open_lexical_index,
    read_texts,
    text_metrics,
)
from biograft_lab.scripts import new_parser, run

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


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measure each set by each variant, and print the result."""
    splits: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as work:
        for split in options.splits:
            splits[split] = {
                name: _measure_set(name, split, Path(work), options) for name in options.sets
            }
    return {
        "splits": splits,
    }


def _measure_set(name: str, split: str, work: Path, options: argparse.Namespace) -> dict[str, Any]:
    task = LinkingTask(set=name, protocol="text", split=split)
    if options.source is None:
        kb = task.open_store(options.data, work)
        search = FusedSearch([open_lexical_index(task.folder(work), kb)])
    else:
        source = SourceConfig(path=options.data / options.source)
        build_store(BuildConfig(sources=(source,)), work / name / split)
        kb = KnowledgeBase.open(work / name / split)
        search = FusedSearch([LexicalIndex.build(kb)])
    types = task.chosen.config.types
    found: dict[str, Any] = {}
    for variant, settings in VARIANTS.items():
        if variant in _TRAINED and options.ner is None:
            continue
        config = LinkerConfig(**settings, mention_types=types if variant in _TRAINED else ())
        detector = open_detector(options.ner, config) if variant in _TRAINED else None
        started = time.process_time()
        linker = Linker(kb, search, detector=detector, config=config)
        if options.source is None:
            row = task.measure(linker, options.data, work)
        else:
            row = text_metrics(
                evaluate_text(linker, read_texts(task.chosen, split, options.data, types))
            )
        found[variant] = {**row, "processor_seconds": time.process_time() - started}
    return found


def main() -> None:
    """Measure, and print one JSON object."""
    parser = new_parser(__doc__)
    parser.add_argument("--sets", type=some_of(SETS), default=list(SETS), help="some of the sets")
    parser.add_argument(
        "--splits", type=some_of(SPLITS), default=list(SPLITS), help="which texts: dev,test"
    )
    parser.add_argument("--source", help="ontology in place of the dictionary, a file of the data")
    parser.add_argument("--ner", type=Path, help="run of `biograft finetune ner`")
    parser.add_argument("--folder", help="where to put files while it runs")
    run(measure, parser)


if __name__ == "__main__":
    main()
