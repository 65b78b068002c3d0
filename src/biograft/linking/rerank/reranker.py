"""The re-ranker: scores the first candidates of another ranking by a cross-encoder, in context."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from biograft.errors import ConfigError, StoreError
from biograft.kb import KnowledgeBase
from biograft.linking.candidates import Candidate, Evidence, NameHits, Rows, Scores
from biograft.linking.fusion import CandidateBuilder, CandidatePool, FusedSearch
from biograft.linking.queries import Context
from biograft.linking.rankers import CandidateRanker, load_ranker
from biograft.linking.rerank.config import RerankConfig
from biograft.linking.rerank.folder import RANKER, Floats, Mix, read_metadata
from biograft.linking.rerank.model import CandidatePair, CandidateTexts, CrossEncoder


class MentionCandidates(NamedTuple):
    """A mention and its candidates, best first."""

    text: str
    context: Context
    candidates: Sequence[Candidate]


class CandidatePairReader:
    """Scores the candidates of mentions, and NIL as the last of each, by a cross-encoder."""

    def __init__(self, kb: KnowledgeBase, model: CrossEncoder, config: RerankConfig) -> None:
        self.model, self.config = model, config
        self._texts = CandidateTexts(kb, config)

    def read(self, mentions: Sequence[MentionCandidates]) -> list[CandidatePair]:
        """Return the tokenized pairs of some mentions, concatenated."""
        marked = self.model.pairs.mark_mentions([(m.text, m.context) for m in mentions])
        left, right = [], []
        for text, mention in zip(marked, mentions, strict=True):
            texts = [self._texts.describe(c.concept, c.name) for c in mention.candidates]
            right += [*texts, self.config.nil_text]
            left += [text] * (len(texts) + 1)
        return self.model.pairs.tokenize(left, right)

    def score(self, mentions: Sequence[MentionCandidates], precision: str = "auto") -> list[Floats]:
        """Score the candidates of mentions, and NIL as the last of each."""
        ends = np.cumsum([len(m.candidates) + 1 for m in mentions], dtype=np.int64)
        scores = self.model.score(self.read(mentions), nil_flags(mentions), precision)
        return np.split(scores, ends[:-1]) if len(mentions) else []


def nil_flags(mentions: Sequence[MentionCandidates]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which pairs of some mentions are those of NIL."""
    ends = np.cumsum([len(m.candidates) + 1 for m in mentions], dtype=np.int64)
    flags = np.zeros(int(ends[-1]) if len(ends) else 0, np.bool_)
    flags[ends - 1] = True
    return flags


def first_concepts(candidates: Iterable[Candidate], n: int) -> list[Candidate]:
    """Return the first candidate of each of the first n concepts."""
    firsts: dict[str, Candidate] = {}
    for candidate in candidates:
        if len(firsts) == n:
            break
        firsts.setdefault(candidate.concept, candidate)
    return list(firsts.values())


class SearchRanker:
    """Ranks names by the fused scores of a search with given weights."""

    name = "search"
    uses_context = False

    def __init__(self, kb: KnowledgeBase, weights: Mapping[str, float]) -> None:
        self.weights = dict(weights)
        self._builder = CandidateBuilder(kb)
        self._fused = FusedSearch([_GeneratorName(name) for name in self.weights], self.weights)

    def rank_candidates(
        self, texts: Sequence[str], pool: CandidatePool, contexts: Sequence[Context]
    ) -> list[list[Candidate]]:
        """Return a candidate for every name, best first; ties go to the lower row."""
        if set(pool.generators) != set(self.weights):
            raise StoreError(
                "the re-ranker learned from candidates that "
                f"{' and '.join(sorted(self.weights))} found, the index has "
                f"{' and '.join(sorted(pool.generators))}; use the kind of index it was "
                "trained with"
            )
        return self._builder.by_name(pool, self._fused.fuse(pool), pool.rows.shape[1])


class _GeneratorName:
    """Stands for a generator that has searched already; fusion only needs its name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def search(self, texts: Sequence[str], k: int) -> NameHits:
        raise NotImplementedError

    def score(self, texts: Sequence[str], rows: Rows) -> Scores:
        raise NotImplementedError


EVIDENCE = "context"


class Reranked(NamedTuple):
    """The candidates of a mention, best first, and the probability of NIL."""

    candidates: list[Candidate]
    nil: float


class ContextReranker:
    """Re-ranks the first candidates of another ranking by the context of the mention."""

    nil_below = 0.0
    """NIL is more probable than a candidate with a lower score."""

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
        self._reader = CandidatePairReader(kb, model, config)

    @classmethod
    def load(
        cls, folder: str | Path, kb: KnowledgeBase, inner: CandidateRanker | None = None
    ) -> ContextReranker:
        """Load a trained re-ranker for a store, which need not be the one it was trained with.

        ``inner`` makes the first ranking; without one, the ranker that it was trained with.
        """
        folder = Path(folder)
        metadata = read_metadata(folder)
        if inner is None and (folder / RANKER).is_dir():
            inner = load_ranker(folder / RANKER, kb)
        if inner is None and not metadata.weights:
            raise ConfigError(
                f"{folder}: the ranker of its candidates is unknown; give one (inner)"
            )
        return cls(
            kb,
            CrossEncoder.load(folder, metadata.config),
            metadata.config,
            mix=metadata.mix,
            inner=inner or SearchRanker(kb, metadata.weights),
        )

    @property
    def uses_context(self) -> bool:
        """Whether the text around a mention is read, or the mention alone."""
        return self.config.context_characters > 0

    def rank_candidates(
        self, texts: Sequence[str], pool: CandidatePool, contexts: Sequence[Context]
    ) -> list[list[Candidate]]:
        """Rank with the inner ranker, then re-rank by context."""
        ranked = self.inner.rank_candidates(texts, pool, contexts)
        contexts = contexts or [Context()] * len(texts)
        rows = zip(texts, contexts, ranked, strict=True)
        return [result.candidates for result in self.rerank([MentionCandidates(*r) for r in rows])]

    def rerank(self, mentions: Sequence[MentionCandidates]) -> list[Reranked]:
        """Re-rank the candidates of mentions."""
        heads = [
            m._replace(candidates=first_concepts(m.candidates, self.config.n_candidates))
            for m in mentions
        ]
        scores = self._reader.score(heads)
        return [self._merge(*row) for row in zip(mentions, heads, scores, strict=True)]

    def _merge(
        self, mention: MentionCandidates, read: MentionCandidates, scores: Floats
    ) -> Reranked:
        """Merge the first ranking with the scores of the cross-encoder."""
        row_of = {c.concept: row for row, c in enumerate(read.candidates)}
        nil = self.mix.nil_logit(float(scores[-1]))
        probabilities = _softmax(np.append(self._odds(read.candidates, scores[:-1], nil), 0.0))
        ranks, gaps = _ranks(scores[:-1]), scores[:-1] - scores[-1]
        head = [c for c in mention.candidates if c.concept in row_of]
        tail = [c for c in mention.candidates if c.concept not in row_of]
        rows = [row_of[c.concept] for c in head]
        odds = self._odds(head, scores[rows], nil)
        ordered = []
        for i in np.argsort(-odds, kind="stable").tolist():
            candidate, row = head[i], rows[i]
            evidence = Evidence(EVIDENCE, candidate.name, ranks[row], float(gaps[row]))
            ordered.append(
                replace(
                    candidate,
                    score=float(odds[i]),
                    probability=float(probabilities[row]),
                    evidence=(*candidate.evidence, evidence),
                )
            )
        lowest = float(odds.min()) if len(odds) else 0.0
        return Reranked([*ordered, *self._behind(tail, lowest)], float(probabilities[-1]))

    def _odds(self, candidates: Sequence[Candidate], scores: Floats, nil: float) -> Floats:
        odds = self.mix.logits([c.score for c in candidates], scores) - nil
        if not np.isfinite(odds).all():
            raise StoreError(
                f"{self.inner.name}: its scores are not finite, so its files are damaged; train "
                "it again"
            )
        return odds

    def _behind(self, tail: Sequence[Candidate], lowest: float) -> list[Candidate]:
        """Return the candidates that were not re-ranked, with scores below ``lowest``."""
        logits = self.mix.logits([c.score for c in tail], np.zeros(len(tail)))
        steps = np.minimum.accumulate(logits - logits[:1])
        return [
            replace(candidate, score=lowest + step, probability=0.0)
            for candidate, step in zip(tail, np.minimum(steps, 0.0).tolist(), strict=True)
        ]


def load_context_reranker(folder: Path, kb: KnowledgeBase) -> ContextReranker:
    """Load a re-ranker as the trained linker of a folder."""
    return ContextReranker.load(folder, kb)


def _ranks(scores: Floats) -> list[int]:
    """Return the rank of each score, from 1."""
    ranks = np.empty(len(scores), np.int64)
    ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    result: list[int] = ranks.tolist()
    return result


def _softmax(logits: Floats) -> Floats:
    weights = np.exp(logits - logits.max())
    probabilities: Floats = weights / weights.sum()
    return probabilities
