"""Mentions with their candidates as pairs for the cross-encoder, and its scores of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from biograft.kb import KnowledgeBase
from biograft.linking.candidates import Candidate
from biograft.linking.rankers import Context
from biograft.linking.rerank.config import RerankConfig
from biograft.linking.rerank.mixing import Floats
from biograft.linking.rerank.model import CrossEncoder
from biograft.linking.rerank.pairs import PairTokens
from biograft.linking.rerank.rendering import CandidateTexts


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
