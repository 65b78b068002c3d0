"""Forms and a detector learned from annotated text, applied to other text.

F1 of mentions (span and concept) without and with what is learned, and the gain with its interval
over documents: NCBI and BC5CDR diseases, learned from train and measured on dev, with a store of
the ontology alone (the published dictionary has the mentions of train as names); GSC+ phenotypes
with nested and re-worded names, learned from the 22 dev abstracts and measured on the 146 others.
For diseases the detector (``biograft learn --detector``) is measured beside learned forms alone.

    BIOGRAFT_DATA=... python -m biograft_lab.scripts.learned_forms
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from biograft.evaluation import evaluate_text
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.linking import Linker, LinkerConfig
from biograft.linking.fusion import FusedSearch
from biograft.linking.lexical.index import LexicalIndex
from biograft.mapping.note_learning import fit_forms
from biograft.metrics import Counts
from biograft.metrics.significance import paired_counts
from biograft.text.documents import Document
from biograft_lab.replication.linking_dictionaries import ONTOLOGY as ONTOLOGY_ALONE
from biograft_lab.replication.protocols import LinkingTask, open_lexical_index, read_texts
from biograft_lab.scripts import new_parser, run
from biograft_lab.scripts.phenotypes import ONTOLOGY, Findings, Phenotypes, read_documents

SETS = ("ncbi-disease", "bc5cdr-disease")
_PLAIN = LinkerConfig(assertions=False, mentions="find", k=1)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Learn from each set, measure, and print the result."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as work:
        for name in SETS:
            found[name] = _diseases(name, options.data, Path(work))
        found["gsc-plus"] = _phenotypes(options.data, Path(work))
    return {
        "found": found,
    }


def _diseases(name: str, data: Path, work: Path) -> dict[str, Any]:
    task = LinkingTask(set=name, protocol="text", split="dev", dictionary=ONTOLOGY_ALONE)
    kb = task.open_store(data, work)
    search = FusedSearch([open_lexical_index(task.folder(work), kb)])
    linker = Linker(kb, search, config=_PLAIN)
    types = task.chosen.config.types
    train, dev = (read_texts(task.chosen, split, data, types) for split in ("train", "dev"))

    def counts(of: Linker) -> Sequence[Sequence[Counts]]:
        documents = evaluate_text(of, dev).documents
        return documents["mentions"], documents["spans"]

    started = time.process_time()
    learned = fit_forms(linker, list(train), detector=True)
    seconds = time.process_time() - started
    arrays = learned.detector.tagger.arrays() if learned.detector else {}
    known = learned.forms if learned.is_applied else ()
    (plain, _), (forms, forms_spans), (both, both_spans) = (
        counts(Linker(kb, linker.search, names=linker.names, config=_PLAIN, **taught))
        for taught in (
            {},
            {"learned": known},
            {"learned": known, "learned_detector": learned.detector},
        )
    )
    return {
        **_compared(plain, forms),
        "detector": _compared(forms, both),
        "detector_spans": _compared(forms_spans, both_spans),
        "detector_megabytes": round(sum(each.nbytes for each in arrays.values()) / 1e6, 2),
        "cross_validated": learned.to_json(),
        "processor_seconds": round(seconds, 1),
    }


def _phenotypes(data: Path, work: Path) -> dict[str, Any]:
    build_store(BuildConfig(sources=(SourceConfig(path=data / ONTOLOGY),)), work / "hpo")
    kb = KnowledgeBase.open(work / "hpo")
    parts, phenotypes = read_documents(data), Phenotypes(kb)
    config = replace(_PLAIN, overlaps="all", reworded=True)
    linker = Linker(kb, FusedSearch([LexicalIndex.build(kb)]), config=config)

    def gold_of(document: Document) -> Findings:
        return phenotypes.of((m.start, m.end, m.concepts[0]) for m in document.mentions)

    def counts(of: Linker) -> list[Counts]:
        texts = [Document(each.id, each.text) for each in parts["rest"]]
        answers = (
            phenotypes.of((m.start, m.end, m.concept) for m in linked.mentions)
            for linked in of.pipe(texts)
        )
        gold = map(gold_of, parts["rest"])
        return [Counts.from_answers(*pair) for pair in zip(gold, answers, strict=True)]

    learned = fit_forms(linker, parts["dev"])
    taught = Linker(kb, linker.search, names=linker.names, learned=learned.forms, config=config)
    return {**_compared(counts(linker), counts(taught)), "cross_validated": learned.to_json()}


def _compared(before: Sequence[Counts], after: Sequence[Counts]) -> dict[str, Any]:
    gain, _ = paired_counts(after, before)
    return {
        "before": sum(before, Counts()).to_json(),
        "after": sum(after, Counts()).to_json(),
        "gain": round(100 * gain.difference, 2),
        "interval": [round(100 * bound, 2) for bound in (gain.interval.low, gain.interval.high)],
        "n_documents": len(before),
    }


def main() -> None:
    """Measure, and print one JSON object."""
    parser = new_parser(__doc__)
    run(measure, parser)


if __name__ == "__main__":
    main()
