"""Names that look like a right answer and are none: of other concepts of its type.

Names are compared by their normalised keys, so that neither case nor hyphens tell two apart, and
a text that is a name of a right concept, too, is never drawn as a wrong one.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from biograft.errors import MissingExtraError
from biograft.probing.similarity.config import SimilarityConfig
from biograft.probing.similarity.names import Ints, StoreNames
from biograft.progress import Progress

if TYPE_CHECKING:
    from biograft.kb import KnowledgeBase

_CELLS = 4_000_000
"""Pairs of names compared at once."""


@dataclass(frozen=True, slots=True)
class _Pool:
    """Names that may be drawn for positives of some types in one language."""

    keys: Ints
    rows: Ints
    texts: list[str]


@dataclass
class Lookalikes:
    """Draws look-alikes; what is drawn for a query depends on it, the store and the seed."""

    base: KnowledgeBase
    names: StoreNames
    joined: Ints  # (n, 2): concepts that are the same
    config: SimilarityConfig
    _same: dict[int, list[int]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for a, b in self.joined.tolist():
            self._same.setdefault(a, []).append(b)
            self._same.setdefault(b, []).append(a)

    def draw(
        self, queries: Ints, positives: Ints, progress: Progress | None = None
    ) -> list[Ints | None]:
        """Give rows of names for each query and positive; None where there are too few."""
        drawn: list[Ints | None] = [None] * len(queries)
        n_done = 0
        for pool, chosen in self._groups(positives):
            for place, alike in self._alike(pool, chosen, positives):
                drawn[place] = self._choose(pool, alike, int(queries[place]), int(positives[place]))
                n_done += 1
                if progress:
                    progress.advance(1, n_done / len(queries))
        return drawn

    def _groups(self, positives: Ints) -> Iterator[tuple[_Pool, Ints]]:
        """Give the places of positives that share a pool, with it."""
        kinds = _type_sets(self.base)
        numbers: dict[tuple[tuple[int, ...], int], list[int]] = {}
        for place, row in enumerate(positives.tolist()):
            group = (kinds[self.names.concepts[row]], int(self.names.languages[row]))
            numbers.setdefault(group, []).append(place)
        of_type = self.base.table("types").column("type").to_numpy()
        typed = self.base.table("types").column("concept").to_numpy()
        for (types, language), places in numbers.items():
            shares = np.zeros(len(self.base), np.bool_)
            if types:
                shares[typed[np.isin(of_type, types)]] = True
            else:  # concepts of no type are as of one
                shares[:] = True
                shares[typed] = False
            fitting = shares[self.names.concepts] & (self.names.languages == language)
            rows = np.flatnonzero(fitting)
            keys, first = np.unique(self.names.keys[rows], return_index=True)
            texts = [self.names.key_texts[key] for key in keys.tolist()]
            yield _Pool(keys, rows[first], texts), np.array(places, np.int64)

    def _alike(self, pool: _Pool, chosen: Ints, positives: Ints) -> Iterator[tuple[int, Ints]]:
        """Give each place with what of the pool is alike to its positive, as places in the pool."""
        cdist, scorer = _rapidfuzz()
        keys = self.names.keys[positives[chosen]]
        different, of_place = np.unique(keys, return_inverse=True)
        order = np.argsort(of_place, kind="stable")
        ends = np.searchsorted(of_place[order], np.arange(len(different) + 1))
        step = max(1, _CELLS // max(len(pool.texts), 1))
        for start in range(0, len(different), step):
            part = different[start : start + step].tolist()
            scores = cdist(
                [self.names.key_texts[key] for key in part],
                pool.texts,
                scorer=scorer,
                score_cutoff=self.config.jaro_winkler,
                dtype=np.float64,  # in 32 bits what is equal to the bound may lie above it
                workers=1,
            )
            for k, row in enumerate(scores, start):
                alike = np.flatnonzero(row > self.config.jaro_winkler)
                for place in chosen[order[ends[k] : ends[k + 1]]].tolist():
                    yield place, alike

    def _choose(self, pool: _Pool, alike: Ints, query: int, positive: int) -> Ints | None:
        """Draw among what is alike and no name of the two concepts or of one that is the same."""
        own = self.names.concepts[[query, positive]].tolist()
        right = {*own, *(other for concept in own for other in self._same.get(concept, ()))}
        keys = self.names.keys_of(np.array(sorted(right), np.int64))
        wrong = alike[~np.isin(pool.keys[alike], keys)]
        if len(wrong) < self.config.negatives:
            return None
        asked, expected = (self.names.key_texts[self.names.keys[row]] for row in (query, positive))
        text = f"{asked}\n{expected}".encode("utf-8", "surrogatepass")
        rng = np.random.default_rng([self.config.seed, zlib.crc32(text)])
        chosen: Ints = rng.choice(wrong, self.config.negatives, replace=False)
        return pool.rows[chosen]


def _type_sets(base: KnowledgeBase) -> list[tuple[int, ...]]:
    """Give the types of each concept."""
    table = base.table("types")
    found: list[list[int]] = [[] for _ in range(len(base))]
    rows = zip(table.column("concept").to_pylist(), table.column("type").to_pylist(), strict=True)
    for concept, kind in rows:
        found[concept].append(kind)
    return [tuple(sorted(set(kinds))) for kinds in found]


def _rapidfuzz() -> tuple[Callable[..., npt.NDArray[np.float64]], Callable[..., float]]:
    try:
        from rapidfuzz.distance import JaroWinkler
        from rapidfuzz.process import cdist
    except ImportError as error:
        raise MissingExtraError("probe", "comparing names by their letters") from error
    return cdist, JaroWinkler.similarity
