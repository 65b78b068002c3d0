"""Triples for graph_embeddings.py: from real files, and random ones."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from biograft.graph.triples import SPLITS, Triples

N_ENTITIES, N_RELATIONS = 100_000, 50


def sample_triples(n: int) -> Triples:
    """Sample random triples, all of the train split."""
    rng = np.random.default_rng(0)
    ends = [rng.integers(0, N_ENTITIES, n, np.int32) for _ in range(2)]
    relations = rng.integers(0, N_RELATIONS, n, np.int32)
    names = tuple(str(k) for k in range(N_RELATIONS))
    splits = np.zeros(n, np.uint8)
    return Triples(ends[0], relations, ends[1], splits, N_ENTITIES, names)


def read_splits(folder: Path, ending: str) -> Triples | None:
    """Read a folder of train, valid and test; return None if it is missing."""
    if not folder.exists():
        return None
    splits = [list(read_rows(folder / f"{name}{ending}")) for name in SPLITS]
    return number_rows(
        [row for split in splits for row in split], np.repeat([0, 1, 2], [*map(len, splits)])
    )


def read_rows(path: Path) -> Iterator[tuple[str, str, str]]:
    """Read head, relation and tail of each line, without the header."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        for line in file:
            head, relation, tail = line.rstrip("\n").split("\t")[:3]
            if (head, relation, tail) != ("head", "relation", "tail"):
                yield head, relation, tail


def number_rows(rows: list[tuple[str, str, str]], splits: Any) -> Triples:
    """Number entities and relations in the order of their names."""
    entities = {name: k for k, name in enumerate(sorted({e for h, _, t in rows for e in (h, t)}))}
    relations = {name: k for k, name in enumerate(sorted({r for _, r, _ in rows}))}
    numbers = np.array([(entities[h], relations[r], entities[t]) for h, r, t in rows], np.int32)
    heads, kinds, tails = (np.ascontiguousarray(column) for column in numbers.T)
    order = splits.astype(np.uint8)
    return Triples(heads, kinds, tails, order, len(entities), tuple(relations))
