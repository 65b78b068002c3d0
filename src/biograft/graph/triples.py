"""The relations of a store as arrays: what embeddings are trained on and neighbours ranked by.

Entities are the store's rows of concepts, relations its numbers of relation names. Which split a
triple belongs to is told by its source: files called ``valid`` (or ``dev``) and ``test``, with any
ending, are held out, all others are to learn from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from biograft.kb import KnowledgeBase

SPLITS = ("train", "valid", "test")
_SPLIT_OF_SOURCE = {"valid": "valid", "dev": "valid", "test": "test"}

Ints = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Triples:
    """Triples side by side: rows of concepts, numbers of relations, and the split of each."""

    heads: Ints
    relations: Ints
    tails: Ints
    splits: npt.NDArray[np.uint8]  # places in SPLITS
    n_entities: int
    relation_names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.heads)

    def of_split(self, *names: str) -> Triples:
        """Keep the triples of one split, or of some."""
        return self.where(np.isin(self.splits, [SPLITS.index(name) for name in names]))

    def where(self, chosen: npt.NDArray[np.bool_]) -> Triples:
        """Keep the triples that are chosen, in their order."""
        return Triples(
            self.heads[chosen],
            self.relations[chosen],
            self.tails[chosen],
            self.splits[chosen],
            self.n_entities,
            self.relation_names,
        )


def read_triples(base: KnowledgeBase) -> Triples:
    """Take the relations of a store, in its order."""
    table = base.table("relations")
    heads, relations, tails = (
        table.column(name).to_numpy().astype(np.int32) for name in ("head", "relation", "tail")
    )
    of_source = np.array(
        [
            SPLITS.index(_SPLIT_OF_SOURCE.get(name.lower().split(".")[0], "train"))
            for name in base.sources
        ],
        np.uint8,
    )
    splits = of_source[table.column("source").to_numpy()] if len(table) else np.zeros(0, np.uint8)
    return Triples(heads, relations, tails, splits, len(base), tuple(base.relation_names))


def graph_fingerprint(base: KnowledgeBase) -> str:
    """Hash what is made from a graph depends on: concepts, types, relations and splits."""
    from biograft.kb import fingerprint

    words = (base.relation_names, base.sources)
    return fingerprint(base, ("concepts", "relations", "types"), words)
