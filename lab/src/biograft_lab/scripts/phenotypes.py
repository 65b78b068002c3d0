"""Phenotypes in abstracts: GSC+ with HPO, untrained, by what the linker may do.

F1, with precision and recall, of mentions (span and concept) and of documents (concepts), with
intervals over documents. Only concepts below *Phenotypic abnormality* count; retired ids of the
gold annotation count as their successors. Settings were chosen on dev and on the 60 documents of
``choose_on.txt``; the rest is the other 146.

names      names as written and misspelt, the longest: the defaults of `biograft link`
nested     the same with names inside longer ones (--overlaps all)
reworded   names in other words (--reworded)
all        both

The answers of another tool are compared in the same way: ``--peer NAME=FILE``, JSON with ``out``,
for each document of dev, choose and rest, in this order, a list of [start, end, id].

    BIOGRAFT_DATA=... python -m biograft_lab.scripts.phenotypes --json
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.linking import Linker
from biograft.metrics import Counts, bootstrap_counts
from biograft.text.documents import Document, Mention
from biograft_lab.scripts import new_parser, run

ROOT = "HP:0000118"
ONTOLOGY, GSC = "ontologies/obo/hp_2025-01-16.obo.gz", "phenotypes/gsc_plus"
PARTS = ("dev", "choose", "rest")
VARIANTS: dict[str, dict[str, Any]] = {
    "names": {},
    "nested": {"overlaps": "all"},
    "reworded": {"reworded": True},
    "all": {"overlaps": "all", "reworded": True},
}
Findings = set[tuple[int, int, str]]


def read_documents(data: Path) -> dict[str, list[Document]]:
    """Read the documents of each part, with their gold mentions."""
    chosen = set((data / GSC / "choose_on.txt").read_text().split())
    test = list(_read(data / GSC / "GSCplus_test_gold.tsv"))
    return {
        "dev": list(_read(data / GSC / "GSCplus_dev_gold.tsv")),
        "choose": [document for document in test if document.id in chosen],
        "rest": [document for document in test if document.id not in chosen],
    }


def _read(path: Path) -> Iterator[Document]:
    for block in path.read_text("utf-8").strip().split("\n\n"):
        name, text, *lines = block.strip("\n").split("\n")
        rows = (line.split("\t") for line in lines if line.strip())
        mentions = (Mention(int(a), int(b), text[int(a) : int(b)], (i,)) for a, b, _, i in rows)
        yield Document(name, text, tuple(mentions))


class Phenotypes:
    """The concepts that count.

    Args:
        kb: HPO.
    """

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb, self._below = kb, set(kb.descendants(ROOT))

    def of(self, spans: Iterable[tuple[int, int, str | None]]) -> Findings:
        """Return the spans of phenotypes, with the present ids of their concepts."""
        return {
            (start, end, concept)
            for start, end, identifier in spans
            if identifier
            for concept in self._kb.ids_of([identifier])
            if concept in self._below
        }


def score(gold: Sequence[Findings], found: Sequence[Findings]) -> dict[str, Any]:
    """Return the metrics of mentions and of documents.

    Args:
        gold: Phenotypes of each document.
        found: Answers for it.
    """
    concepts = [[{concept for *_, concept in own} for own in of] for of in (gold, found)]
    return {"mentions": _metrics(gold, found), "documents": _metrics(*concepts)}


def _metrics(gold: Sequence[set[Any]], found: Sequence[set[Any]]) -> dict[str, Any]:
    of_documents = [Counts.from_answers(*pair) for pair in zip(gold, found, strict=True)]
    counts = sum(of_documents, Counts())
    return {
        "f1": round(100 * counts.f1, 2),
        "interval": bootstrap_counts(of_documents)["f1"].to_json(),
        "precision": round(100 * counts.precision, 2),
        "recall": round(100 * counts.recall, 2),
        "n": counts.right + counts.missed,
    }


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measure each part by each variant and peer, and print the result."""
    parts = read_documents(options.data)
    with tempfile.TemporaryDirectory() as work:
        sources = (SourceConfig(path=options.data / ONTOLOGY),)
        build_store(BuildConfig(sources=sources), Path(work) / "kb")
        kb = KnowledgeBase.open(Path(work) / "kb")
        phenotypes = Phenotypes(kb)
        gold = {
            part: [
                phenotypes.of((m.start, m.end, m.concepts[0]) for m in document.mentions)
                for document in documents
            ]
            for part, documents in parts.items()
        }
        found: dict[str, Any] = {}
        for name, settings in VARIANTS.items():
            linker = Linker.open(kb, k=1, mentions="find", **settings)
            list(linker.pipe(parts["dev"]))  # opens the names and compiles
            started = time.process_time()
            answers = {
                part: [
                    phenotypes.of((m.start, m.end, m.concept) for m in linked.mentions)
                    for linked in linker.pipe(documents)
                ]
                for part, documents in parts.items()
            }
            seconds = time.process_time() - started
            found[name] = {part: score(gold[part], answers[part]) for part in PARTS}
            found[name]["processor_seconds"] = round(seconds, 2)
        for name, _, file in (peer.partition("=") for peer in options.peer):
            found[name] = _peer(Path(file), gold, phenotypes)
    return {
        "found": found,
        "n_documents": {part: len(documents) for part, documents in parts.items()},
    }


def _peer(file: Path, gold: dict[str, list[Findings]], phenotypes: Phenotypes) -> dict[str, Any]:
    content = json.loads(file.read_text())
    answers = iter(content["out"])
    scores: dict[str, Any] = {
        part: score(gold[part], [phenotypes.of(map(tuple, next(answers))) for _ in gold[part]])
        for part in PARTS
    }
    return {**scores, "processor_seconds": round(content.get("t", 0.0), 2)}


def main() -> None:
    """Measure, and print one JSON object."""
    parser = new_parser(__doc__)
    parser.add_argument("--peer", action="append", default=[], help="answers of another tool")
    run(measure, parser)


if __name__ == "__main__":
    main()
