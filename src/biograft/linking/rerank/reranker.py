"""A re-ranker at work: the first candidates of each mention in a new order, by its context.

The score of a candidate is its log-odds against NIL, so that scores of different mentions can be
compared: above 0 it is likelier than no concept at all. Probabilities are shared among the
concepts that were read and NIL. Names of one concept share what the context says of it and
differ by the first ranking. Candidates behind those that were read stay behind them, in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from biograft.errors import ConfigError, StoreError
from biograft.kb import KnowledgeBase
from biograft.linking.candidates import Candidate, Evidence
from biograft.linking.gathering import Gathered
from biograft.linking.rankers import CandidateRanker, Context, open_model
from biograft.linking.rerank.config import RerankConfig
from biograft.linking.rerank.folder import RANKER, read_description
from biograft.linking.rerank.mixing import Floats, Mix
from biograft.linking.rerank.model import CrossEncoder
from biograft.linking.rerank.reading import Asked, PairReader, first_concepts
from biograft.linking.rerank.searched import SearchRanker

EVIDENCE = "context"


class Reranked(NamedTuple):
    """The candidates of a mention, best first, and how likely it is that none is right."""

    candidates: list[Candidate]
    nil: float


class ContextReranker:
    """Ranks the first candidates of another ranking again, reading them beside the mention."""

    uses_context = True
    nil_below = 0.0
    """The score below which it is likelier that no concept fits."""

    def __init__(
        self,
        kb: KnowledgeBase,
        model: CrossEncoder,
        config: RerankConfig,
        *,
        mix: Mix,
        inner: CandidateRanker,
    ) -> None:
        self.kb, self.model, self.config = kb, model, config
        self.mix, self.inner, self.name = mix, inner, f"{inner.name}+{EVIDENCE}"
        self._reader = PairReader(kb, model, config)

    @classmethod
    def open(
        cls, folder: str | Path, kb: KnowledgeBase, inner: CandidateRanker | None = None
    ) -> ContextReranker:
        """Open a trained re-ranker for a store, which need not be the one it was trained with.

        The first ranking is that of ``inner``; without one, the one it was trained with.
        """
        folder = Path(folder)
        described = read_description(folder)
        if inner is None and (folder / RANKER).is_dir():
            inner = open_model(folder / RANKER, kb)
        if inner is None and not described.weights:
            raise ConfigError(
                f"{folder}: does not say what made its candidates; give the ranker (inner)"
            )
        return cls(
            kb,
            CrossEncoder.load(folder, described.config),
            described.config,
            mix=described.mix,
            inner=inner or SearchRanker(kb, described.weights),
        )

    def rank_candidates(
        self, texts: Sequence[str], gathered: Gathered, contexts: Sequence[Context]
    ) -> list[list[Candidate]]:
        """Rank as the inner ranker does, then again by context."""
        ranked = self.inner.rank_candidates(texts, gathered, contexts)
        places = contexts or [Context()] * len(texts)
        asked = [Asked(*each) for each in zip(texts, places, ranked, strict=True)]
        return [each.candidates for each in self.rerank(asked)]

    def rerank(self, mentions: Sequence[Asked]) -> list[Reranked]:
        """Bring the candidates of mentions into their new order."""
        read = [
            each._replace(candidates=first_concepts(each.candidates, self.config.n_candidates))
            for each in mentions
        ]
        scores = self._reader.score(read)
        return [self._merge(*each) for each in zip(mentions, read, scores, strict=True)]

    def _merge(self, mention: Asked, read: Asked, scores: Floats) -> Reranked:
        """Make the new order of what the first ranking and the context say."""
        concepts = {c.concept: place for place, c in enumerate(read.candidates)}
        nil = self.mix.nil_logit(float(scores[-1]))
        chances = _softmax(np.append(self._odds(read.candidates, scores[:-1], nil), 0.0))
        ranks, gaps = _ranks(scores[:-1]), scores[:-1] - scores[-1]
        head = [c for c in mention.candidates if c.concept in concepts]
        tail = [c for c in mention.candidates if c.concept not in concepts]
        own = [concepts[c.concept] for c in head]
        odds = self._odds(head, scores[own], nil)
        ordered = []
        for row in np.argsort(-odds, kind="stable").tolist():
            found, place = head[row], own[row]
            said = Evidence(EVIDENCE, found.name, ranks[place], float(gaps[place]))
            ordered.append(
                replace(
                    found,
                    score=float(odds[row]),
                    probability=float(chances[place]),
                    evidence=(*found.evidence, said),
                )
            )
        lowest = float(odds.min()) if len(odds) else 0.0
        return Reranked([*ordered, *self._behind(tail, lowest)], float(chances[-1]))

    def _odds(self, candidates: Sequence[Candidate], scores: Floats, nil: float) -> Floats:
        odds = self.mix.logits([c.score for c in candidates], scores) - nil
        if not np.isfinite(odds).all():
            raise StoreError(
                f"{self.inner.name}: gives scores that are no finite numbers; its files are "
                "damaged, train it again"
            )
        return odds

    def _behind(self, tail: Sequence[Candidate], lowest: float) -> list[Candidate]:
        """Continue the scores downwards for candidates that were not read."""
        logits = self.mix.logits([c.score for c in tail], np.zeros(len(tail)))
        steps = np.minimum.accumulate(logits - logits[:1])
        return [
            replace(candidate, score=lowest + step, probability=0.0)
            for candidate, step in zip(tail, np.minimum(steps, 0.0).tolist(), strict=True)
        ]


def open_context_reranker(folder: Path, kb: KnowledgeBase) -> ContextReranker:
    """Open a re-ranker as the trained linker of a folder."""
    return ContextReranker.open(folder, kb)


def _ranks(scores: Floats) -> list[int]:
    """Number places from the best score on, from 1."""
    ranks = np.empty(len(scores), np.int64)
    ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    found: list[int] = ranks.tolist()
    return found


def _softmax(logits: Floats) -> Floats:
    weights = np.exp(logits - logits.max())
    shares: Floats = weights / weights.sum()
    return shares
