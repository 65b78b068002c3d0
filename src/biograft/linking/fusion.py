"""What several generators find for some texts, side by side: every name with every score."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from biograft.errors import ConfigError, nearest
from biograft.kb import KnowledgeBase
from biograft.linking.candidates import Candidate, Evidence, Generator, NameHits, Rows, Scores

Ranks = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Gathered:
    """The names that any of some generators found for some texts.

    The names of a text stand in ascending order; rows are filled up with -1.
    """

    generators: tuple[str, ...]
    rows: Rows  # (texts, names)
    scores: Scores  # (generators, texts, names): -inf where a generator does not hold the name
    ranks: Ranks  # (generators, texts, names): from 1; 0 where a generator did not find the name

    def __len__(self) -> int:
        return len(self.rows)


def gather(generators: Sequence[Generator], texts: Sequence[str], k: int) -> Gathered:
    """Search with every generator, unite what they find, and have each score all of it."""
    if k < 1:
        raise ConfigError(f"k: expected at least 1, found {k}")
    found = [generator.search(texts, k) for generator in generators]
    rows = _unite([hits.rows for hits in found])
    ranks = np.stack([_ranks_of(rows, hits) for hits in found])
    if len(generators) == 1:
        scores = _scores_of(found[0], ranks[0])[None]
    else:
        scores = np.stack([generator.score(texts, rows) for generator in generators])
    return Gathered(tuple(generator.name for generator in generators), rows, scores, ranks)


def gather_nothing(n_texts: int) -> Gathered:
    """Say that nobody has searched for some texts."""
    rows, scores = np.zeros((n_texts, 0), np.int64), np.zeros((0, n_texts, 0), np.float32)
    return Gathered((), rows, scores, np.zeros(scores.shape, np.int32))


def widen(gathered: Gathered, rows: Rows) -> Gathered:
    """Make room for further names, which none of the generators has found: (texts, names).

    -1 stands for no name; what is there already is not taken twice.
    """
    united = _unite([gathered.rows, rows])
    n_generators = len(gathered.generators)
    scores = np.full((n_generators, *united.shape), -np.inf, np.float32)
    ranks = np.zeros((n_generators, *united.shape), np.int32)
    line, place = np.nonzero(gathered.rows >= 0)
    column = _columns(united, line, gathered.rows[line, place])
    scores[:, line, column] = gathered.scores[:, line, place]
    ranks[:, line, column] = gathered.ranks[:, line, place]
    return Gathered(gathered.generators, united, scores, ranks)


def _unite(parts: Sequence[Rows]) -> Rows:
    """Give the distinct rows of every line in ascending order, -1 behind the last."""
    last = np.iinfo(np.int64).max
    rows = np.concatenate(parts, axis=1)
    rows = np.sort(np.where(rows < 0, last, rows), axis=1)
    rows[:, 1:][rows[:, 1:] == rows[:, :-1]] = last
    rows = np.sort(rows, axis=1)
    widest = int((rows < last).sum(axis=1).max(initial=0))
    united = rows[:, :widest]
    return np.where(united == last, -1, united)


def _ranks_of(rows: Rows, hits: NameHits) -> Ranks:
    """Say at which rank hits have each row; 0 where they do not."""
    ranks = np.zeros(rows.shape, np.int32)
    line, place = np.nonzero(hits.rows >= 0)
    column = _columns(rows, line, hits.rows[line, place])
    # the same name cannot be found twice, so each place is written once
    ranks[line, column] = place + 1
    return ranks


def _columns(rows: Rows, line: Rows, wanted: Rows) -> Rows:
    """Find in which column of its line each wanted row stands; all are there."""
    span = int(rows.max(initial=0)) + 2
    known_line, known_column = np.nonzero(rows >= 0)
    keys = known_line * span + rows[known_line, known_column]  # ascending
    columns: Rows = known_column[np.searchsorted(keys, line * span + wanted)]
    return columns


def _scores_of(hits: NameHits, ranks: Ranks) -> Scores:
    """Take the scores of a single generator from its own hits."""
    scores = np.full(ranks.shape, -np.inf, np.float32)
    line, column = np.nonzero(ranks)
    scores[line, column] = hits.scores[line, ranks[line, column] - 1]
    return scores


DEFAULT_WEIGHTS = {"lexical": 0.5, "dense": 0.5}
"""How much each generator counts; one that is not named here counts 0.5."""
LEXICAL = "lexical"
SAME_NAME = np.float32(0.99)
"""The lexical score of a name that is the text after normalising."""
MOST_SIMILAR = np.float32(0.98)


class FusedSearch:
    """Generators whose scores lie between -1 and 1 (cosines) as one generator."""

    name = "fused"

    def __init__(
        self, generators: Sequence[Generator], weights: Mapping[str, float] | None = None
    ) -> None:
        self.generators = tuple(generators)
        names = [generator.name for generator in self.generators]
        if not names or len(set(names)) < len(names):
            raise ConfigError(f"generators: expected some, each of its own name; found {names}")
        self.weights = weight_shares(names, weights or {})

    def __str__(self) -> str:
        return "+".join(f"{name}*{share:.3g}" for name, share in sorted(self.weights.items()))

    def gather(self, texts: Sequence[str], k: int) -> Gathered:
        """Unite the k nearest names of each generator."""
        return gather(self.generators, texts, k)

    def fuse(self, gathered: Gathered) -> Scores:
        """Bring the scores of all generators to one: (texts, names), -inf where no name is."""
        return fuse_scores(gathered, self.weights)

    def search(self, texts: Sequence[str], k: int) -> NameHits:
        """Find the k best of the names that are among the k nearest of any generator."""
        gathered = self.gather(texts, k)
        return best_names(gathered.rows, self.fuse(gathered), k)

    def score(self, texts: Sequence[str], rows: Rows) -> Scores:
        """Score names of one's own choice for each text."""
        names = tuple(generator.name for generator in self.generators)
        scores = np.stack([generator.score(texts, rows) for generator in self.generators])
        fused = self.fuse(Gathered(names, rows, scores, np.zeros(scores.shape, np.int32)))
        return np.where(np.isfinite(scores).any(axis=0), fused, -np.inf).astype(np.float32)


def fuse_scores(gathered: Gathered, weights: Mapping[str, float]) -> Scores:
    """Bring the scores of all generators to one, by weights that add up to 1: (texts, names)."""
    if len(gathered.generators) == 1:
        only: Scores = gathered.scores[0]
        return only
    fused = np.zeros(gathered.rows.shape, np.float32)
    for name, scores in zip(gathered.generators, gathered.scores, strict=True):
        fused += np.float32(weights[name]) * np.where(np.isfinite(scores), scores, 0)
    fused = np.minimum(fused, MOST_SIMILAR)
    if LEXICAL in gathered.generators:
        lexical = gathered.scores[gathered.generators.index(LEXICAL)]
        fused = np.where(lexical >= SAME_NAME, lexical, fused)
    return np.where(gathered.rows >= 0, fused, -np.inf).astype(np.float32)


def best_names(rows: Rows, scores: Scores, k: int) -> NameHits:
    """Take the k names of the highest scores for each text; of equal ones the lower row first."""
    order = np.lexsort((rows, -scores), axis=1)[:, :k]
    best = np.full((len(rows), k), -1, np.int64)
    out = np.full((len(rows), k), -np.inf, np.float32)
    best[:, : order.shape[1]] = np.take_along_axis(rows, order, axis=1)
    out[:, : order.shape[1]] = np.take_along_axis(scores, order, axis=1)
    best[~np.isfinite(out)] = -1
    return NameHits(best, out)


def weight_shares(names: Sequence[str], weights: Mapping[str, float]) -> dict[str, float]:
    """Check weights and bring them to the sum of 1; a generator without counts as usual."""
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


class CandidateMaker:
    """Makes candidates of rows of the store's table of names."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb
        self.concepts: npt.NDArray[np.uint32] = kb.table("names").column("concept").to_numpy()
        """The concept of each row."""

    def by_name(self, gathered: Gathered, scores: Scores, k: int) -> list[list[Candidate]]:
        """Give the k best names of each text: (texts, names) scores, equal ones by lower row."""
        order = np.lexsort((gathered.rows, -scores), axis=1)
        return [
            [
                self._candidate(gathered, float(scores[text, best]), text, [best])
                for best in order[text, :k].tolist()
                if gathered.rows[text, best] >= 0 and np.isfinite(scores[text, best])
            ]
            for text in range(len(gathered))
        ]

    def by_concept(self, gathered: Gathered, scores: Scores, k: int) -> list[list[Candidate]]:
        """Give the k best concepts of each text, each by its best name.

        The evidence is the best name of the concept in the eyes of every generator.
        """
        order = np.lexsort((gathered.rows, -scores), axis=1)
        chosen: list[list[Candidate]] = []
        for text in range(len(gathered)):
            known = np.isfinite(scores[text, order[text]]) & (gathered.rows[text, order[text]] >= 0)
            ranked = order[text][known]
            concepts = self.concepts[gathered.rows[text, ranked]]
            places: dict[int, list[int]] = {}
            for concept, place in zip(concepts.tolist(), ranked.tolist(), strict=True):
                places.setdefault(concept, []).append(place)
            best = list(places.values())[:k]
            chosen.append(
                [self._candidate(gathered, float(scores[text, own[0]]), text, own) for own in best]
            )
        return chosen

    def _candidate(
        self, gathered: Gathered, score: float, text: int, places: Sequence[int]
    ) -> Candidate:
        """Make a candidate of its names in a line of what was gathered, the best name first."""
        rows = gathered.rows[text]
        concept = int(self.concepts[rows[places[0]]])
        return Candidate(
            concept=self._kb.id_at(concept),
            concept_name=self._kb.name_at(concept),
            name=self._kb.name(int(rows[places[0]])).text,
            score=score,
            evidence=tuple(self._evidence(gathered, text, places)),
        )

    def _evidence(self, gathered: Gathered, text: int, places: Sequence[int]) -> Iterator[Evidence]:
        for number, generator in enumerate(gathered.generators):
            found = _first_found(gathered.ranks[number, text], places)
            if found is not None:
                yield Evidence(
                    generator,
                    self._kb.name(int(gathered.rows[text, found])).text,
                    int(gathered.ranks[number, text, found]),
                    float(gathered.scores[number, text, found]),
                )


def _first_found(ranks: Rows | Ranks, places: Sequence[int]) -> int | None:
    """Give the place whose name a generator ranked best; None if it found none of them."""
    found = [(int(ranks[place]), place) for place in places if ranks[place] > 0]
    return min(found)[1] if found else None


def best_per_concept(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Keep the first candidate of each concept, with the best evidence of all of them."""
    kept: dict[str, Candidate] = {}
    evidence: dict[str, dict[str, Evidence]] = {}
    for candidate in candidates:
        kept.setdefault(candidate.concept, candidate)
        best = evidence.setdefault(candidate.concept, {})
        for each in candidate.evidence:
            if each.generator not in best or each.rank < best[each.generator].rank:
                best[each.generator] = each
    return [
        replace(candidate, evidence=tuple(evidence[concept].values()))
        for concept, candidate in kept.items()
    ]
