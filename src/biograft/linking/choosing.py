"""From scored names to candidates: one for each name, or the best name of each concept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from biograft.kb import KnowledgeBase
from biograft.linking.candidates import Candidate, Evidence, Rows, Scores
from biograft.linking.gathering import Gathered, Ranks


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
