"""What objectives must know of the graph of a table's entities. Numpy only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from biograft.objectives.records import Ints

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class GraphOfEntities:
    """The neighbours of each entity, and how relations see vectors (TransR).

    ``neighbours``, ``relations`` and ``signs`` are (entities, most neighbours), padded at the end.
    """

    neighbours: Ints
    """Rows of the table; -1 is padding."""
    relations: Ints
    """Numbers of relations; -1 is padding."""
    signs: Ints
    """1 where the entity is the head of the triple, -1 where it is the tail, 0 at padding."""
    types: Ints
    """(entities,): numbers of types; -1: none."""
    counts: Ints
    """(entities,): how often each occurs in the text."""
    relation_vectors: Floats
    """(relations, dim of relations)"""
    projections: Floats
    """(relations, dim, dim of relations)"""
