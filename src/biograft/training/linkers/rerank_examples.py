"""Training examples of a re-ranker: mentions in context, with labelled candidates.

The candidates must be like those of a new document. A first ranking that was trained on these
mentions puts the correct concept first and leaves nothing to learn from the context: collect the
candidates with a linker that was not trained on them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.kb.fingerprints import store_fingerprint
from biograft.linking.candidates import Candidate
from biograft.linking.linker import Linker
from biograft.linking.queries import Context, GoldQuery, Query
from biograft.linking.rerank.config import RerankConfig
from biograft.linking.rerank.reranker import MentionCandidates, first_concepts

_NAMES_PER_CONCEPT = 4
"""Names retrieved per concept, since several names may belong to one concept."""
_CHUNK = 512


class QueryRanker(Protocol):
    """Ranks candidates for the parts of queries, such as a linker."""

    def rank(self, queries: Sequence[Query], k: int) -> list[list[list[Candidate]]]:
        """Return k candidates for each part of each query."""


@dataclass(frozen=True, slots=True)
class RerankExample:
    """A mention with its candidates, one per concept; ``right`` ends with NIL."""

    mention: MentionCandidates
    right: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class RerankCounts:
    """Numbers of mentions, by what they were used for."""

    given: int = 0
    composite: int = 0
    """Skipped: it is unknown which part refers to which concept."""
    nil: int = 0
    missed: int = 0
    """The correct concept is not among the candidates; the label is NIL."""


@dataclass(frozen=True, slots=True)
class RerankData:
    """Training examples, held-out examples on which the mix is fitted, and the first ranking."""

    kb: KnowledgeBase
    train: tuple[RerankExample, ...]
    held_out: tuple[RerankExample, ...]
    counts: RerankCounts
    first_ranking: str
    """Score source of the candidates."""
    weights: Mapping[str, float]
    """Weights of its generators; empty if another ranker made the ranking."""

    def provenance(self) -> dict[str, Any]:
        """Return hashes of the examples."""
        digest = hashlib.sha256()
        for example in (*self.train, *self.held_out):
            candidates = [(c.concept, c.name, c.score) for c in example.mention.candidates]
            digest.update(repr((*example.mention[:2], candidates, example.right)).encode())
        return {
            "kb": store_fingerprint(self.kb),
            "examples": digest.hexdigest(),
            "counts": asdict(self.counts),
            "first_ranking": self.first_ranking,
        }


def collect_examples(
    kb: KnowledgeBase,
    ranker: QueryRanker,
    queries: Iterable[GoldQuery],
    config: RerankConfig,
    dev: Iterable[GoldQuery] | None = None,
) -> RerankData:
    """Collect the candidates of mentions; without ``dev``, some documents are held out."""
    examples, counts = _examples(kb, ranker, list(queries), config)
    if dev is not None:
        train = [example for example, _ in examples]
        held_out = [example for example, _ in _examples(kb, ranker, list(dev), config)[0]]
    else:
        dev_documents = _hold_out({document for _, document in examples}, config)
        train = [example for example, document in examples if document not in dev_documents]
        held_out = [example for example, document in examples if document in dev_documents]
    if not any(any(example.right[:-1]) for example in train):
        raise ConfigError(
            f"training mentions: of {counts.given:,} given, {len(train):,} are left to learn from, "
            "and none has a correct candidate; are their ids those of this store?"
        )
    linker = ranker if isinstance(ranker, Linker) else None
    search = linker.search if linker and not linker.ranker else None
    return RerankData(
        kb=kb,
        train=tuple(train),
        held_out=tuple(held_out),
        counts=counts,
        first_ranking=linker.score_source if linker else type(ranker).__name__,
        weights=dict(search.weights) if search else {},
    )


def _examples(
    kb: KnowledgeBase, ranker: QueryRanker, queries: Sequence[GoldQuery], config: RerankConfig
) -> tuple[list[tuple[RerankExample, str]], RerankCounts]:
    """Return examples, each with the name of its document, and their counts."""
    simple = [query for query in queries if len(query.parts) == 1]
    examples, nil, missed = [], 0, 0
    for start in range(0, len(simple), _CHUNK):
        chunk = simple[start : start + _CHUNK]
        ranked = ranker.rank(chunk, config.n_candidates * _NAMES_PER_CONCEPT)
        for query, (names,) in zip(chunk, ranked, strict=True):
            candidates = first_concepts(names, config.n_candidates)
            gold = kb.ids_of(query.gold)
            right = [candidate.concept in gold for candidate in candidates]
            nil, missed = nil + (not query.gold), missed + (bool(query.gold) and not any(right))
            context = Context(query.context, query.start or 0, query.end or 0)
            mention = MentionCandidates(query.parts[0], context, tuple(candidates))
            example = RerankExample(mention, (*right, not any(right)))
            examples.append((example, query.document or query.context or query.parts[0]))
    return examples, RerankCounts(len(queries), len(queries) - len(simple), nil, missed)


def _hold_out(documents: set[str], config: RerankConfig) -> set[str]:
    """Choose held-out documents by the seed, at least one if there are two."""
    seed = config.training.seed
    ordered = sorted(documents, key=lambda name: hashlib.sha256(f"{seed} {name}".encode()).digest())
    n_held_out = max(1, round(config.held_out * len(ordered))) if len(ordered) > 1 else 0
    return set(ordered[:n_held_out])
