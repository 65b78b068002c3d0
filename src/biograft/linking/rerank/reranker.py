"""Mentions with their candidates as pairs for the cross-encoder, and its scores of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from biograft.errors import ConfigError, StoreError
from biograft.kb import KnowledgeBase
from biograft.linking.candidates import Candidate, Evidence, NameHits, Rows, Scores
from biograft.linking.fusion import CandidateMaker, FusedSearch, Gathered
from biograft.linking.rankers import CandidateRanker, Context, open_model
from biograft.linking.rerank.config import RerankConfig
from biograft.linking.rerank.folder import RANKER, Floats, Mix, read_description
from biograft.linking.rerank.model import CandidateTexts, CrossEncoder, PairTokens


class Asked(NamedTuple):
    """A mention and its candidates, best first."""

    text: str
    context: Context
    candidates: Sequence[Candidate]


class PairReader:
    """Reads each candidate of a mention, and in the last place the text that stands for none."""

    def __init__(self, kb: KnowledgeBase, model: CrossEncoder, config: RerankConfig) -> None:
        self.model, self.config = model, config
        self._texts = CandidateTexts(kb, config)

    def read(self, asked: Sequence[Asked]) -> list[PairTokens]:
        """Make the pairs of some mentions, one mention's behind the other's."""
        shown = self.model.pairs.show_mentions([(each.text, each.context) for each in asked])
        left, right = [], []
        for mention, each in zip(shown, asked, strict=True):
            told = [self._texts.tell(c.concept, c.name) for c in each.candidates]
            right += [*told, self.config.nil_text]
            left += [mention] * (len(told) + 1)
        return self.model.pairs.tokenize(left, right)

    def score(self, asked: Sequence[Asked], precision: str = "auto") -> list[Floats]:
        """Score the candidates of mentions, and NIL in the last place of each."""
        ends = np.cumsum([len(each.candidates) + 1 for each in asked], dtype=np.int64)
        scores = self.model.score(self.read(asked), nil_places(asked), precision)
        return np.split(scores, ends[:-1]) if len(asked) else []


def nil_places(asked: Sequence[Asked]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Say which pairs of some mentions stand for no concept."""
    ends = np.cumsum([len(each.candidates) + 1 for each in asked], dtype=np.int64)
    places = np.zeros(int(ends[-1]) if len(ends) else 0, np.bool_)
    places[ends - 1] = True
    return places


def first_concepts(candidates: Iterable[Candidate], n: int) -> list[Candidate]:
    """Give the first candidate of each of the first n concepts."""
    kept: dict[str, Candidate] = {}
    for candidate in candidates:
        if len(kept) == n:
            break
        kept.setdefault(candidate.concept, candidate)
    return list(kept.values())


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
