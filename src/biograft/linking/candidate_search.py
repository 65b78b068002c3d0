"""Candidates of texts: searched in batches, ranked, calibrated, kept for texts that come again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from biograft.arrays import Flags
from biograft.errors import ConfigError, nearest
from biograft.kb import KnowledgeBase, ValueSetMembers
from biograft.linking.candidates import Candidate, Context, Generator
from biograft.linking.fusion import (
    CandidateBuilder,
    CandidatePool,
    FusedSearch,
    best_per_concept,
    empty_pool,
    fuse_scores,
)
from biograft.linking.rankers import CandidateRanker, needs_search

if TYPE_CHECKING:
    from biograft.linking.calibration import Calibration
    from biograft.linking.reviewed import ReviewedNames

_CHUNK = 512
"""Texts searched at once: enough to keep all cores busy, few enough for memory."""
_CACHE_SIZE = 1 << 14
"""Texts whose candidates are kept for the next batch; mentions repeat themselves."""


class CandidateSearch:
    """Finds the candidates of texts by a search, a ranker, or both."""

    def __init__(
        self,
        kb: KnowledgeBase,
        search: Generator | None,
        ranker: CandidateRanker | None = None,
        calibration: Calibration | None = None,
        wanted: ConceptFilter | None = None,
        reviewed: ReviewedNames | None = None,
    ) -> None:
        """Combine a search and a ranker.

        Args:
            kb: Knowledge base of the candidates.
            search: Finds names; None for a ranker that finds them by itself.
            ranker: Orders what was found; default: the order of the scores.
            calibration: Makes probabilities of scores.
            wanted: Concepts that may be answers; default: all.
            reviewed: Decisions of reviewers, which come before any score.
        """
        if search is None and needs_search(ranker):
            raise ConfigError(
                "search: none given, and there is no ranker that finds names by itself"
            )
        self.fused = (
            search if isinstance(search, FusedSearch) or search is None else FusedSearch([search])
        )
        if wanted is not None and self.fused is None:
            raise ConfigError("types, sources, value_set: a linker without a search takes none")
        self.ranker, self.calibration, self._wanted = ranker, calibration, wanted
        self._kb, self.reviewed = kb, reviewed
        self.builder = CandidateBuilder(kb)
        self._known: dict[tuple[str, Context, int, int], tuple[Candidate, ...]] = {}

    @property
    def source(self) -> str:
        """Origin of the scores: generators with their weights, and the ranker."""
        parts = [str(self.fused)] if self.fused else []
        return " ".join([*parts, self.ranker.name] if self.ranker else parts)

    @property
    def uses_context(self) -> bool:
        """Whether the ranker reads the text around a mention."""
        return self.ranker is not None and self.ranker.uses_context

    def score_best(self, texts: Sequence[str]) -> list[float]:
        """Return the score of the best name of each text; 0 without one, or without a search.

        Args:
            texts: The texts.
        """
        if self.fused is None:
            return [0.0] * len(texts)
        hits = self.fused.search(texts, 1)
        scores: list[float] = np.where(hits.rows[:, 0] >= 0, hits.scores[:, 0], 0.0).tolist()
        return scores

    def find(
        self,
        texts: Sequence[str],
        contexts: Sequence[Context],
        k: int,
        depth: int,
        *,
        by_concept: bool = True,
    ) -> list[tuple[Candidate, ...]]:
        """Find the best candidates of texts; equal texts are searched once.

        Args:
            texts: What is looked up.
            contexts: Those of the texts, or none.
            k: Candidates of each text.
            depth: Names that are searched for each text, at least.
            by_concept: One candidate per concept; else per name.

        Returns:
            The candidates of each text, best first.

        Raises:
            ConfigError: ``k`` is below 1.
        """
        if k < 1:
            raise ConfigError(f"k: expected at least 1, found {k}")
        uses_context = self.uses_context and bool(contexts)
        around = contexts if uses_context else [Context()] * len(texts)
        keys = [(text, context, k, depth) for text, context in zip(texts, around, strict=True)]
        known = self._known if by_concept and not uses_context else {}
        if len(known) > _CACHE_SIZE:
            known.clear()
        new = [key for key in dict.fromkeys(keys) if key not in known]
        for start in range(0, len(new), _CHUNK):
            chunk = new[start : start + _CHUNK]
            found = [text for text, *_ in chunk]
            around = [context for _, context, *_ in chunk]
            ranked = self._rank(found, around, k, depth, by_concept=by_concept)
            if self.reviewed is not None:
                # scores of a ranker are not compared with those of names
                by_similarity, allowed = self.ranker is None, self.is_wanted
                ranked = self.reviewed.apply(
                    found,
                    ranked,
                    k,
                    by_concept=by_concept,
                    by_similarity=by_similarity,
                    allowed=allowed,
                )
            if self.calibration is not None:
                ranked = [self.calibration.apply(candidates) for candidates in ranked]
            known.update(zip(chunk, map(tuple, ranked), strict=True))
        return [known[key] for key in keys]

    def is_wanted(self, concept: str) -> bool:
        """Return whether a concept may be an answer."""
        return self._wanted is None or bool(self._wanted.concepts[self._kb.row(concept)])

    def _rank(
        self,
        texts: list[str],
        contexts: list[Context],
        k: int,
        depth: int,
        *,
        by_concept: bool,
    ) -> list[list[Candidate]]:
        depth = max(k, depth)
        if self.fused is None:
            pool = empty_pool(len(texts))
        elif self._wanted is not None:
            pool = self._wanted.collect(self.fused.collect, texts, depth)
        else:
            pool = self.fused.collect(texts, depth)
        if self.ranker is not None:
            ranked = self.ranker.rank_candidates(texts, pool, contexts)
            return [(best_per_concept(names) if by_concept else names)[:k] for names in ranked]
        build = self.builder.by_concept if by_concept else self.builder.by_name
        weights = self.fused.weights if self.fused else {}
        return build(pool, fuse_scores(pool, weights), k)


# ---- the concepts that a linker may answer with


_DEEPER, _DEEPEST = 8, 4096
"""Factor by which a search is widened if a filter leaves nothing, and the most names."""


class ConceptFilter:
    """Keeps the names of wanted concepts.

    A concept is wanted if it has one of the types (code or label) and a name from one of the
    sources; no type or source means all. It is in the value set, if there is one.

    Args:
        kb: Knowledge base of the concepts.
        types: Codes or labels of types.
        sources: Names of sources.
        value_set: The members of a value set.
        concepts: Flags of the concepts that are wanted at all; default: all of them.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        types: Sequence[str] = (),
        sources: Sequence[str] = (),
        value_set: ValueSetMembers | None = None,
        concepts: Flags | None = None,
    ) -> None:
        wanted = np.ones(len(kb), np.bool_) if concepts is None else concepts.copy()
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
        if value_set is not None:
            wanted &= value_set.flags
        self.concepts: Flags = wanted
        """Whether each concept is wanted."""
        self.names: Flags = wanted[concept_of_name]
        """Whether each name is one of a wanted concept."""
        self.excludes = lru_cache(_CACHE_SIZE)(self._excludes)
        """Whether a text is a name, but none of a wanted concept."""
        self._kb = kb

    def _excludes(self, text: str) -> bool:
        rows = self._kb.rows_by_name(text)
        return bool(rows) and not self.concepts[rows].any()

    def collect(
        self, search: Callable[[Sequence[str], int], CandidatePool], texts: Sequence[str], k: int
    ) -> CandidatePool:
        """Collect candidates, and keep the wanted ones.

        While a text has none, more names are searched.

        Args:
            search: Finds the pool of texts, given the number of names.
            texts: The texts.
            k: Names to find for each text.

        Returns:
            The pool of wanted names.
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
