"""Populations of test mentions by concept: seen in training, known to a table, or neither.

An entity table can help most where fine-tuning has not seen the concept, but the table has it. The
recall of each population is a ratio of sums over documents, as a metric is (``task_counts``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biograft.evaluation import StoreIds
from biograft.evaluation.gold import gold_ids
from biograft.kb import KnowledgeBase
from biograft.kb.vocabularies import canonical_id
from biograft.models.knowledge.entities import ENTITIES
from biograft.text.documents import Document, Mention
from biograft.text.formats import read_documents
from biograft_lab.replication.task_counts import Pair

SEEN, KNOWN = "seen concept", "unseen concept, in the table"
UNKNOWN = "unseen concept, not in the table"
POPULATIONS = (SEEN, KNOWN, UNKNOWN)


@dataclass(frozen=True, slots=True)
class Populations:
    """Tells the population of mentions by their concepts."""

    seen: frozenset[str]
    """Ids of concepts with a mention in the training documents, as written."""
    table: frozenset[str]
    """Ids of the concepts of an entity table, in canonical spelling."""
    ids: StoreIds

    @classmethod
    def read(cls, train: Iterable[Document], encoder: Path, kb: KnowledgeBase) -> Populations:
        """Read the table that lies beside an encoder; ``kb`` is the store of its ids."""
        lines = (encoder / ENTITIES).read_text(encoding="utf-8").splitlines()
        table = frozenset(canonical_id(json.loads(line)["id"]) for line in lines)
        seen = (
            i for each in train for mention in each.mentions for i in gold_ids(mention.concepts)
        )
        return cls(frozenset(seen), table, StoreIds(kb))

    def of(self, mention: Mention) -> str:
        """Return the population of a mention; empty if it has no concept."""
        concepts = gold_ids(mention.concepts)
        if not concepts:
            return ""
        if self.seen.intersection(concepts):
            return SEEN
        is_known = any(self.ids.meant(concept) in self.table for concept in concepts)
        return KNOWN if is_known else UNKNOWN


def recall_pairs(
    populations: Populations, config: Any, examples: Sequence[Document], predictions: Path
) -> dict[str, list[Pair]]:
    """Return for each population the mentions of each document that are found, and all of them.

    A mention is found by exact span, and by type unless the task ignores types.
    """
    pairs: dict[str, list[Pair]] = {name: [] for name in POPULATIONS}
    for gold, predicted in zip(examples, read_documents(predictions, "jsonl"), strict=True):
        spans = {_span(mention, config.types) for mention in predicted.mentions}
        of_document = [(populations.of(mention), mention) for mention in gold.mentions]
        for name in POPULATIONS:
            chosen = {_span(mention, config.types) for of, mention in of_document if of == name}
            pairs[name].append((len(chosen & spans), len(chosen)))
    return pairs


def _span(mention: Mention, types: str) -> tuple[int, int, str]:
    return mention.start, mention.end, "" if types == "ignore" else mention.type
