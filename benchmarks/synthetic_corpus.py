"""A synthetic knowledge base with a graph, annotated text, and examples of all tasks.

Names are those of ``synthetic_names.py``; a document is sentences of names. Everything is the same
every time, and written into a folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from synthetic_names import make_names

from biograft.evaluation import LinkQuery
from biograft.graph.embedding import GraphRecipe, embed_graph
from biograft.graph.neighbours import build_neighbours
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.linking.annotation import annotate
from biograft.linking.annotation.runner import ExecutionConfig
from biograft.text.documents import Document, Mention
from biograft.text.segmentation import PhraseConfig, SegmentationConfig, build_segmentation
from biograft.text.tasks.registry import (
    Answer,
    ClassExample,
    PairExample,
    RankingExample,
    RelationExample,
)

NAMES_PER_CONCEPT, TYPES, RELATIONS = 3, ("disease", "drug"), ("treats", "causes")
_FILLERS = "we saw with and the patients of a high dose had no".split()


class SyntheticCorpus:
    """A folder with a store (``kb``), shards, segmentation, vectors and neighbours."""

    def __init__(self, folder: Path, n_concepts: int, n_documents: int, dim: int) -> None:
        self.folder, self._rng = folder, np.random.default_rng(0)
        folder.mkdir(parents=True)
        names = make_names(n_concepts * NAMES_PER_CONCEPT)
        self.names = [names[n::n_concepts] for n in range(n_concepts)]
        self.texts = [self._document() for _ in range(n_documents)]
        (folder / "text.txt").write_text("".join(f"{text}\n" for text in self.texts), "utf-8")
        self.kb = self._build_store()
        execution = ExecutionConfig(workers=1, chunk_bytes=1 << 20)
        annotate(self.kb.folder, [folder / "text.txt"], self.path("shards"), execution=execution)
        segmentation = SegmentationConfig(language="en", phrases=PhraseConfig(min_count=4))
        build_segmentation(self.kb, [folder / "text.txt"], self.path("segmentation"), segmentation)
        changes = [f"model.dim={dim}", "training.epochs=1", "model.relation_dim=0"]
        embed_graph(self.kb, GraphRecipe.load("transr", changes), self.path("vectors"))
        build_neighbours(self.kb, self.path("neighbours"))

    def path(self, name: str) -> Path:
        """Return a folder of the corpus."""
        return self.folder / name

    def _build_store(self) -> KnowledgeBase:
        concepts, triples = self.folder / "concepts.jsonl", self.folder / "triples.tsv"
        rows = [
            {"id": f"C{n}", "name": group[0], "names": {"en": list(group)}, "types": [TYPES[n % 2]]}
            for n, group in enumerate(self.names)
        ]
        concepts.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
        ends = self._rng.integers(0, len(self.names), (5 * len(self.names), 2)).tolist()
        lines = [f"C{a}\t{RELATIONS[(a + b) % 2]}\tC{b}\n" for a, b in ends if a != b]
        triples.write_text("head\trelation\ttail\n" + "".join(lines), "utf-8")
        sources = (
            SourceConfig(path=concepts, format="jsonl"),
            SourceConfig(path=triples, format="triples"),
        )
        build_store(BuildConfig(sources=sources), self.path("kb"))
        return KnowledgeBase.open(self.path("kb"))

    def _document(self, n_sentences: int = 12) -> str:
        return " ".join(self._sentence()[0] for _ in range(n_sentences))

    def _sentence(self) -> tuple[str, list[Mention]]:
        """Sample a sentence with two mentions."""
        text, mentions = "", []
        for number in self._rng.integers(0, len(self.names), 2).tolist():
            text += " ".join(self._rng.choice(_FILLERS, 4)) + " "
            name = self.names[number][int(self._rng.integers(NAMES_PER_CONCEPT))]
            end = len(text) + len(name)
            mentions.append(Mention(len(text), end, name, (f"C{number}",), TYPES[number % 2]))
            text += f"{name} "
        return f"{text.strip()}.", mentions

    def examples(self, task: str, n: int) -> list[Any]:
        """Return examples of a task."""
        return [next(self._sample(task)) for _ in range(n)]

    def _sample(self, task: str) -> Iterator[Any]:
        (text, mentions), (other, _) = self._sentence(), self._sentence()
        label = str(int(self._rng.integers(2)))
        if task == "ner":
            yield Document(f"d{self._rng.integers(1 << 30)}", text, tuple(mentions))
        elif task == "relation":
            yield RelationExample(text, mentions[0], mentions[1], f"r{label}")
        elif task == "ranking":
            yield RankingExample(text, (Answer(other, 1), Answer(text[:20]), Answer(text[-20:])))
        elif task == "classification":
            yield ClassExample(text, (label,))
        else:
            yield PairExample(text, other, label)

    def queries(self, n: int) -> Sequence[LinkQuery]:
        """Return mentions with their concepts, in context."""
        found = []
        for row in range(n):
            text, (mention, _) = self._sentence()
            gold = frozenset(mention.concepts)
            span = (mention.start, mention.end)
            found.append(LinkQuery(mention.text, gold, (), (gold,), (), f"d{row}", *span, text))
        return found
