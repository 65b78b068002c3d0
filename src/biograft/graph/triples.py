"""Triples of a store as arrays, split into train, valid and test.

Entities are rows of concepts in the store, relations are indices of its relation names. The split
follows from the source: triples of files called ``valid`` (or ``dev``) and ``test``, with any
suffix, are held out; all others are training triples.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from biograft.arrays import Bytes, Flags, Int32s
from biograft.artifacts import check_range
from biograft.kb.tables import STORE, file_name

if TYPE_CHECKING:
    from biograft.kb import KnowledgeBase

SPLITS = ("train", "valid", "test")
_SPLIT_NAMES = {"valid": "valid", "dev": "valid", "test": "test"}


@dataclass(frozen=True)
class Triples:
    """Triples as parallel arrays: rows of concepts, indices of relations, and splits."""

    heads: Int32s
    """Rows of the heads."""
    relations: Int32s
    """Index of each relation in ``relation_names``."""
    tails: Int32s
    """Rows of the tails."""
    splits: Bytes  # indices into SPLITS
    """Split of each triple, an index in ``SPLITS``: train, valid, test."""
    n_entities: int
    """Number of concepts, with and without triples."""
    relation_names: tuple[str, ...]
    """Names of the relations, by index."""

    def __len__(self) -> int:
        return len(self.heads)

    def of_split(self, *names: str) -> Triples:
        """Return the triples of one or several splits."""
        return self.where(np.isin(self.splits, [SPLITS.index(name) for name in names]))

    def where(self, mask: Flags) -> Triples:
        """Return the triples that a mask selects, in their order.

        Args:
            mask: Whether each triple is selected.
        """
        return Triples(
            self.heads[mask],
            self.relations[mask],
            self.tails[mask],
            self.splits[mask],
            self.n_entities,
            self.relation_names,
        )

    def reversed(self) -> Triples:
        """Return these triples with heads for tails."""
        return replace(self, heads=self.tails, tails=self.heads)

    def with_inverse(self) -> Triples:
        """Return these triples and the inverse of each, with a relation of its own."""
        names = self.relation_names
        return Triples(
            np.concatenate([self.heads, self.tails]),
            np.concatenate([self.relations, self.relations + np.int32(len(names))]),
            np.concatenate([self.tails, self.heads]),
            np.concatenate([self.splits, self.splits]),
            self.n_entities,
            (*names, *(f"{name} (inverse)" for name in names)),
        )


def read_triples(base: KnowledgeBase) -> Triples:
    """Read the relations of a store, in its order; compiled loops rely on their range.

    Args:
        base: The knowledge base.

    Returns:
        The triples of all splits.

    Raises:
        StoreError: A number is out of range.
    """
    table = base.table("relations")
    columns = {name: table.column(name).to_numpy() for name in table.column_names}
    n_relations, n_sources = len(base.relation_names), len(base.sources)
    try:
        for name, size in zip(columns, (len(base), n_relations, len(base), n_sources), strict=True):
            check_range(name, columns[name], 0, size - 1)
    except ValueError as error:
        raise STORE.damaged(base.folder / file_name("relations"), error) from error
    heads, relations, tails = (
        columns[name].astype(np.int32) for name in ("head", "relation", "tail")
    )
    split_by_source = np.array(
        [
            SPLITS.index(_SPLIT_NAMES.get(name.lower().split(".")[0], "train"))
            for name in base.sources
        ],
        np.uint8,
    )
    splits = split_by_source[columns["source"]] if len(table) else np.zeros(0, np.uint8)
    return Triples(heads, relations, tails, splits, len(base), tuple(base.relation_names))


def graph_fingerprint(base: KnowledgeBase) -> str:
    """Hash the graph of a store: concepts, types, relations and splits.

    Args:
        base: The knowledge base.
    """
    from biograft.kb import fingerprint

    vocabularies = (base.relation_names, base.sources)
    return fingerprint(base, ("concepts", "relations", "types"), vocabularies)
