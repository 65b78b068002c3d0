"""The first ranking where no trained linker makes it: the scores of the search itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from biograft.errors import StoreError
from biograft.kb import KnowledgeBase
from biograft.linking.candidates import Candidate, NameHits, Rows, Scores
from biograft.linking.choosing import CandidateMaker
from biograft.linking.fusing import FusedSearch
from biograft.linking.gathering import Gathered
from biograft.linking.rankers import Context


class SearchRanker:
    """Ranks names as the search did whose weights it knows."""

    name = "search"
    uses_context = False

    def __init__(self, kb: KnowledgeBase, weights: Mapping[str, float]) -> None:
        self.weights = dict(weights)
        self._maker = CandidateMaker(kb)
        self._fused = FusedSearch([_Finished(name) for name in self.weights], self.weights)

    def rank_candidates(
        self, texts: Sequence[str], gathered: Gathered, contexts: Sequence[Context]
    ) -> list[list[Candidate]]:
        """Give every name as a candidate, best first; equal scores by the lower row."""
        if set(gathered.generators) != set(self.weights):
            raise StoreError(
                "the re-ranker learned from candidates that "
                f"{' and '.join(sorted(self.weights))} found, the index has "
                f"{' and '.join(sorted(gathered.generators))}; use the kind of index it was "
                "trained with"
            )
        return self._maker.by_name(gathered, self._fused.fuse(gathered), gathered.rows.shape[1])


class _Finished:
    """Stands for a generator that has found already: fusing asks for no more than its name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def search(self, texts: Sequence[str], k: int) -> NameHits:
        raise NotImplementedError

    def score(self, texts: Sequence[str], rows: Rows) -> Scores:
        raise NotImplementedError
