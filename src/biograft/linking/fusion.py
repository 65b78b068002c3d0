"""Score fusion: the union of what several candidate generators find, and one score per name.

:class:`FusedSearch` searches with all generators (lexical, dense), has each score the whole
candidate pool, and takes the weighted mean. :class:`CandidateBuilder` turns names into candidates.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np

from biograft.arrays import Array, Bytes, Int32s, Uints
from biograft.errors import ConfigError, StoreError, nearest
from biograft.kb import KnowledgeBase
from biograft.kb.records import NameKind
from biograft.kb.tables import NAME_KINDS
from biograft.linking.candidates import Candidate, Evidence, Generator, NameHits, Rows, Scores

Ranks = Int32s

_CACHE_SIZE = 1 << 14
"""Concepts that are kept."""


@dataclass(frozen=True, slots=True)
class CandidatePool:
    """The union of the names that several generators found for each text, with all scores.

    The rows of a text are ascending and padded with -1.
    """

    generators: tuple[str, ...]
    """Names of the searches."""
    rows: Rows  # (texts, names)
    """Rows of the names, (texts, width)."""
    scores: Scores  # (generators, texts, names): -inf for a name not in the generator's index
    """Score of each name by each search, (searches, texts, width); -inf outside its index."""
    ranks: Ranks  # (generators, texts, names): from 1; 0 if the generator did not find the name
    """Rank of each name by each search, from 1; 0 where the search did not find it."""

    def __len__(self) -> int:
        return len(self.rows)


def collect_candidates(
    generators: Sequence[Generator], texts: Sequence[str], k: int
) -> CandidatePool:
    """Search with every generator, unite the results, and score the union with each.

    Args:
        generators: The generators, at least one.
        texts: What is searched.
        k: Names that each generator finds for a text.

    Returns:
        The union of the names.

    Raises:
        ConfigError: ``k`` is below 1.
    """
    if k < 1:
        raise ConfigError(f"k: expected at least 1, found {k}")
    all_hits = [generator.search(texts, k) for generator in generators]
    rows = _unite([hits.rows for hits in all_hits])
    ranks = [
        _move(hits.rows, rows, 1 + np.indices(hits.rows.shape, np.int32)[1], 0) for hits in all_hits
    ]
    if len(generators) == 1:
        scores = [_move(all_hits[0].rows, rows, all_hits[0].scores, -np.inf)]
    else:
        scores = [generator.score(texts, rows) for generator in generators]
    names = tuple(generator.name for generator in generators)
    return CandidatePool(names, rows, np.stack(scores), np.stack(ranks))


def empty_pool(n_texts: int) -> CandidatePool:
    """Return a pool without generators and names, for linkers that do not search.

    Args:
        n_texts: The number of texts.
    """
    rows, scores = np.zeros((n_texts, 0), np.int64), np.zeros((0, n_texts, 0), np.float32)
    return CandidatePool((), rows, scores, np.zeros(scores.shape, np.int32))


def extend_pool(pool: CandidatePool, rows: Rows) -> CandidatePool:
    """Add names that no generator found; names that are in the pool are not added again.

    Args:
        pool: The pool.
        rows: The names, (texts, names), -1 for none.

    Returns:
        The wider pool.
    """
    united = _unite([pool.rows, rows])
    scores = _move(pool.rows, united, pool.scores, -np.inf)
    return CandidatePool(pool.generators, united, scores, _move(pool.rows, united, pool.ranks, 0))


def _unite(parts: Sequence[Rows]) -> Rows:
    """Return the distinct rows of every line, ascending and padded with -1."""
    last = np.iinfo(np.int64).max
    rows = np.concatenate(parts, axis=1)
    rows = np.sort(np.where(rows < 0, last, rows), axis=1)
    rows[:, 1:][rows[:, 1:] == rows[:, :-1]] = last
    rows = np.sort(rows, axis=1)
    widest = int((rows < last).sum(axis=1).max(initial=0))
    united = rows[:, :widest]
    return np.where(united == last, -1, united)


def _move(rows: Rows, united: Rows, values: Array, missing: float) -> Array:
    """Move values of rows to the columns that these have among united rows."""
    moved = np.full((*values.shape[:-1], united.shape[1]), missing, values.dtype)
    line, column = np.nonzero(rows >= 0)
    span = int(united.max(initial=0)) + 2
    united_line, united_column = np.nonzero(united >= 0)
    keys = united_line * span + united[united_line, united_column]  # ascending
    at = united_column[np.searchsorted(keys, line * span + rows[line, column])]
    moved[..., line, at] = values[..., line, column]
    return moved


DEFAULT_WEIGHTS = {"lexical": 0.5, "dense": 0.5}
"""Weight of each generator; others weigh 0.5."""
LEXICAL = "lexical"
SAME_NAME = np.float32(0.99)
"""The lexical score of a name that equals the text after normalisation."""
MAX_SIMILARITY = np.float32(0.98)
"""Fused scores of other names stay below that of an equal name."""


class FusedSearch:
    """Several generators with scores from -1 to 1 (cosines), fused into one generator.

    Args:
        generators: The generators, with distinct names.
        weights: Weight of each by name; default: equal ones.
    """

    name = "fused"

    def __init__(
        self, generators: Sequence[Generator], weights: Mapping[str, float] | None = None
    ) -> None:
        self.generators = tuple(generators)
        names = [generator.name for generator in self.generators]
        if not names or len(set(names)) < len(names):
            raise ConfigError(f"generators: expected distinct names, at least one; found {names}")
        self.weights = normalise_weights(names, weights or {})

    def __str__(self) -> str:
        return "+".join(f"{name}*{weight:.3g}" for name, weight in sorted(self.weights.items()))

    def collect(self, texts: Sequence[str], k: int) -> CandidatePool:
        """Return the union of the k nearest names of each generator.

        Args:
            texts: The texts.
            k: Names that each generator finds for a text.
        """
        return collect_candidates(self.generators, texts, k)

    def fuse(self, pool: CandidatePool) -> Scores:
        """Fuse the scores of all generators: (texts, names), -inf where there is no name.

        Args:
            pool: The names with the scores of all generators.
        """
        return fuse_scores(pool, self.weights)

    def search(self, texts: Sequence[str], k: int) -> NameHits:
        """Find the k best names among the k nearest of any generator.

        Args:
            texts: The texts.
            k: Names to find for each text.
        """
        pool = self.collect(texts, k)
        return best_names(pool.rows, self.fuse(pool), k)

    def score(self, texts: Sequence[str], rows: Rows) -> Scores:
        """Score the given names for each text.

        Args:
            texts: The texts.
            rows: Names of each text, (texts, names).
        """
        names = tuple(generator.name for generator in self.generators)
        scores = np.stack([generator.score(texts, rows) for generator in self.generators])
        fused = self.fuse(CandidatePool(names, rows, scores, np.zeros(scores.shape, np.int32)))
        return np.where(np.isfinite(scores).any(axis=0), fused, -np.inf).astype(np.float32)


def fuse_scores(pool: CandidatePool, weights: Mapping[str, float]) -> Scores:
    """Compute the weighted mean of the generators' scores, weights summing to 1: (texts, names).

    A generator that scores no name for a text, since its encoder cannot read the text, has no
    weight there. A name that equals the text keeps its lexical score, so that it always comes
    first.

    Args:
        pool: The names with the scores of all generators.
        weights: Weight of each generator.
    """
    if len(pool.generators) == 1:
        only: Scores = pool.scores[0]
        return only
    fused = np.zeros(pool.rows.shape, np.float32)
    total = np.zeros((len(pool), 1), np.float32)
    for name, scores in zip(pool.generators, pool.scores, strict=True):
        scored = np.isfinite(scores)
        fused += np.float32(weights[name]) * np.where(scored, scores, 0)
        total += np.float32(weights[name]) * scored.any(axis=1, keepdims=True)
    fused = np.minimum(fused / np.where(total > 0, total, 1), MAX_SIMILARITY)
    if LEXICAL in pool.generators:
        lexical = pool.scores[pool.generators.index(LEXICAL)]
        fused = np.where(lexical >= SAME_NAME, lexical, fused)
    return np.where(pool.rows >= 0, fused, -np.inf).astype(np.float32)


def best_names(rows: Rows, scores: Scores, k: int) -> NameHits:
    """Return the names with the highest scores for each text; ties go to the lower row.

    Args:
        rows: The names, (texts, names).
        scores: Their scores.
        k: Names to return of each text.
    """
    order = np.lexsort((rows, -scores), axis=1)[:, :k]
    padding = ((0, 0), (0, k - order.shape[1]))
    best = np.take_along_axis(scores, order, axis=1).astype(np.float32, copy=False)
    best = np.pad(best, padding, constant_values=-np.inf)
    found = np.pad(np.take_along_axis(rows, order, axis=1), padding)
    return NameHits(np.where(np.isfinite(best), found, -1), best)


def check_generators(pool: CandidatePool, expected: Collection[str], learned: str) -> None:
    """Refuse candidates of other generators than a trained linker learned from.

    Args:
        pool: The candidates of a search.
        expected: Names of the generators in training.
        learned: What depends on them, as the beginning of a message.

    Raises:
        StoreError: The pool has other generators.
    """
    if set(pool.generators) != set(expected):
        raise StoreError(
            f"{learned} {' and '.join(sorted(expected))}, the index has "
            f"{' and '.join(sorted(pool.generators))}; use the kind of index it was trained with"
        )


def normalise_weights(names: Sequence[str], weights: Mapping[str, float]) -> dict[str, float]:
    """Check weights and scale them to sum to 1; a generator without one gets its default.

    Args:
        names: Names of the generators.
        weights: Weights by name.

    Raises:
        ConfigError: A generator or weight is wrong.
    """
    for name, weight in weights.items():
        if name not in names:
            raise ConfigError(f"weights: no generator is called {name!r}; {nearest(name, names)}")
        if not math.isfinite(weight) or weight < 0:
            raise ConfigError(f"weights: expected {name} to be 0 or more, found {weight}")
    chosen = {name: weights.get(name, DEFAULT_WEIGHTS.get(name, 0.5)) for name in names}
    total = sum(chosen.values())
    if total <= 0:
        raise ConfigError("weights: expected at least one above 0, found none")
    return {name: weight / total for name, weight in chosen.items()}


PREFERENCE = (
    NameKind.PREFERRED,
    NameKind.SYNONYM,
    NameKind.ABBREVIATION,
    NameKind.RELATED,
    NameKind.BROAD,
    NameKind.NARROW,
)
"""Tie-break: name kinds in order of preference."""
_RANK_OF_KIND = np.array([PREFERENCE.index(kind) for kind in NAME_KINDS], np.uint8)


class CandidateBuilder:
    """Builds candidates from rows of the store's names table.

    Names that equal the text are ordered by their kind: the concept that prefers the name comes
    before one that has it as a synonym. Other ties go to the lower row.
    """

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb
        self.concepts: Uints = kb.numbers("names", "concept")
        """The concept of each row."""
        self._kinds: Bytes = kb.numbers("names", "kind")
        self._types: Uints = kb.numbers("types", "type")
        self._types_end: Uints = kb.numbers("concepts", "types_end")
        self._concept_of = lru_cache(_CACHE_SIZE)(self._read_concept)

    def by_name(self, pool: CandidatePool, scores: Scores, k: int) -> list[list[Candidate]]:
        """Return the k best names of each text, one candidate per name.

        ``scores`` are (texts, names).

        Args:
            pool: The names of texts.
            scores: Their scores, (texts, names).
            k: Names of each text.
        """
        return self._build(pool, scores, self._group(pool, scores, by_concept=False), k)

    def by_concept(self, pool: CandidatePool, scores: Scores, k: int) -> list[list[Candidate]]:
        """Return the k best concepts of each text, each scored by its best name.

        The evidence lists, for every generator, the name of the concept that it ranked best. The
        first candidate names the concepts that it was preferred to by the order of rows alone.

        Args:
            pool: The names of texts.
            scores: Their scores, (texts, names).
            k: Concepts of each text.
        """
        groups = self._group(pool, scores, by_concept=True)
        results = self._build(pool, scores, groups, k)
        starts = np.searchsorted(groups.text, np.arange(len(pool) + 1)).tolist()
        for text, built in enumerate(results):
            firsts = groups.column[starts[text] : starts[text + 1]]
            if len(firsts) > 1 and built[0].score >= SAME_NAME:
                tied = self._tied(pool.rows[text], scores[text], firsts)
                built[0] = replace(built[0], tied=tied) if tied else built[0]
        return results

    def _group(self, pool: CandidatePool, scores: Scores, *, by_concept: bool) -> _NameGroups:
        """Group the names of each text by their concept, the best first; or each name alone."""
        rows, order = pool.rows, self._order(pool.rows, scores)
        found = np.isfinite(scores) & (rows >= 0)
        text, place = np.nonzero(np.take_along_axis(found, order, axis=1))
        column = order[text, place]
        first = group = np.arange(len(text))
        if by_concept:
            keys = text * (len(self._kb) + 1) + self.concepts[rows[text, column]]
            _, first, number = np.unique(keys, return_index=True, return_inverse=True)
            by_first = np.argsort(first)
            position = np.empty(len(first), np.int64)
            position[by_first] = np.arange(len(first))
            first, group = first[by_first], position[number]
        best = np.full((len(pool.generators), len(first)), -1, np.int64)
        for generator, ranks in enumerate(pool.ranks):
            own = ranks[text, column]
            ranked = np.flatnonzero(own > 0)
            ranked = ranked[np.lexsort((own[ranked], group[ranked]))]
            groups, at = np.unique(group[ranked], return_index=True)
            best[generator, groups] = column[ranked[at]]
        return _NameGroups(text[first], column[first], best)

    def _build(
        self, pool: CandidatePool, scores: Scores, groups: _NameGroups, k: int
    ) -> list[list[Candidate]]:
        """Build the candidates of the first k groups of each text."""
        number = np.arange(len(groups.text)) - np.searchsorted(groups.text, groups.text)
        text, column, best = (part[..., number < k] for part in groups)
        rows = pool.rows[text, column]
        evidence: list[list[Evidence]] = [[] for _ in rows]
        text_at, concept_at = cache(self._kb.name_texts.__getitem__), self._concept_of
        for name, own, found, ranks in zip(
            pool.generators, best, pool.scores, pool.ranks, strict=True
        ):
            kept = np.flatnonzero(own >= 0)
            at = (text[kept], own[kept])
            values = (kept, pool.rows[at], ranks[at], found[at])
            for n, row, rank, score in zip(*(each.tolist() for each in values), strict=True):
                evidence[n].append(Evidence(name, text_at(row), rank, score))
        results: list[list[Candidate]] = [[] for _ in range(len(pool))]
        columns = (text, self.concepts[rows], rows, scores[text, column])
        for n, concept, row, score, reasons in zip(
            *(each.tolist() for each in columns), evidence, strict=True
        ):
            identifier, name, types = concept_at(concept)
            results[n].append(
                Candidate(
                    identifier, name, text_at(row), score, evidence=tuple(reasons), types=types
                )
            )
        return results

    def _read_concept(self, row: int) -> tuple[str, str, tuple[str, ...]]:
        """Return the id, the preferred name and the codes of the types of a concept."""
        first = int(self._types_end[row - 1]) if row else 0
        codes = self._types[first : int(self._types_end[row])].tolist()
        types = tuple(self._kb.types[code].code for code in codes)
        return self._kb.id_at(row), self._kb.name_at(row), types

    def _order(self, rows: Rows, scores: Scores) -> Rows:
        """Return the columns of each text, the best name first."""
        ranks = np.where(scores >= SAME_NAME, _RANK_OF_KIND[self._kinds[rows]], 0)
        order: Rows = np.lexsort((rows, ranks, -scores), axis=1)
        return order

    def _tied(self, rows: Rows, scores: Scores, columns: Rows) -> tuple[str, ...]:
        """Return the ids of the concepts whose name is as good as that of the first column."""
        ranks = _RANK_OF_KIND[self._kinds[rows[columns]]]
        same = (scores[columns] == scores[columns[0]]) & (ranks == ranks[0])
        return tuple(
            self._kb.id_at(int(self.concepts[rows[columns[i]]]))
            for i in np.flatnonzero(same)[1:].tolist()
        )


class _NameGroups(NamedTuple):
    """The names of texts, grouped: by text, the group of the best name first."""

    text: Rows  # (groups,)
    column: Rows  # (groups,): of the best name
    best: Rows  # (generators, groups): column of the name that a generator ranked best, or -1


def best_per_concept(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Keep the first candidate of each concept, with the best evidence of every generator.

    Args:
        candidates: Candidates, best first.
    """
    firsts: dict[str, Candidate] = {}
    evidence: dict[str, dict[str, Evidence]] = {}
    for candidate in candidates:
        firsts.setdefault(candidate.concept, candidate)
        best = evidence.setdefault(candidate.concept, {})
        for item in candidate.evidence:
            if item.generator not in best or item.rank < best[item.generator].rank:
                best[item.generator] = item
    return [
        replace(candidate, evidence=tuple(evidence[concept].values()))
        for concept, candidate in firsts.items()
    ]
