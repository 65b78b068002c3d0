"""The concepts that a linker may answer with: those of some semantic types and vocabularies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from biograft.errors import ConfigError, nearest
from biograft.kb import KnowledgeBase
from biograft.linking.fusion import CandidatePool

Flags = npt.NDArray[np.bool_]

_DEEPER, _DEEPEST = 8, 4096
"""Factor by which a search is widened if a filter leaves nothing, and the most names."""


class ConceptFilter:
    """Keeps the names of wanted concepts.

    A concept is wanted if it has one of the types (code or label) and a name from one of the
    sources; no type or source means all.
    """

    def __init__(
        self, kb: KnowledgeBase, types: Sequence[str] = (), sources: Sequence[str] = ()
    ) -> None:
        wanted = np.ones(len(kb), np.bool_)
        concept_of_name = kb.numbers("names", "concept")
        if types:
            labels = [(kind.code, kind.label) for kind in kb.types]
            codes = _codes("types", types, labels)
            rows = np.isin(kb.numbers("types", "type"), codes)
            wanted &= _flags(kb.numbers("types", "concept")[rows], len(kb))
        if sources:
            codes = _codes("sources", sources, [(source,) for source in kb.sources])
            rows = np.isin(kb.numbers("names", "source"), codes)
            wanted &= _flags(concept_of_name[rows], len(kb))
        self.concepts: Flags = wanted
        """Whether each concept is wanted."""
        self.names: Flags = wanted[concept_of_name]
        """Whether each name is one of a wanted concept."""

    def collect(
        self, search: Callable[[Sequence[str], int], CandidatePool], texts: Sequence[str], k: int
    ) -> CandidatePool:
        """Collect candidates, and keep the wanted ones.

        While a text has none, more names are searched.
        """
        while True:
            pool = self._keep(search(texts, k))
            if k >= min(_DEEPEST, len(self.names)) or (pool.rows >= 0).any(axis=1).all():
                return pool
            k *= _DEEPER

    def _keep(self, pool: CandidatePool) -> CandidatePool:
        """Return a pool without the other names; rows stay ascending."""
        kept = (pool.rows >= 0) & self.names[pool.rows]
        order = np.argsort(~kept, axis=1, kind="stable")[:, : int(kept.sum(axis=1).max(initial=0))]
        kept = np.take_along_axis(kept, order, axis=1)
        rows = np.where(kept, np.take_along_axis(pool.rows, order, axis=1), -1)
        scores = np.take_along_axis(pool.scores, order[None], axis=2)
        ranks = np.take_along_axis(pool.ranks, order[None], axis=2)
        return CandidatePool(
            pool.generators,
            rows,
            np.where(kept, scores, -np.inf).astype(np.float32),
            np.where(kept, ranks, 0).astype(np.int32),
        )


def _codes(field: str, names: Sequence[str], known: Sequence[tuple[str, ...]]) -> list[int]:
    """Return the numbers of types or sources, found by any of their names in any case."""
    numbers: dict[str, list[int]] = {}
    for number, labels in enumerate(known):
        for label in {label.casefold() for label in labels if label}:
            numbers.setdefault(label, []).append(number)
    found: list[int] = []
    for name in names:
        if name.casefold() not in numbers:
            shown = (label for labels in known for label in labels if label)
            raise ConfigError(f"{field}: the store has no {name!r}; {nearest(name, shown)}")
        found += numbers[name.casefold()]
    return found


def _flags(rows: npt.NDArray[np.integer[Any]], n: int) -> Flags:
    flags = np.zeros(n, np.bool_)
    flags[rows] = True
    return flags
