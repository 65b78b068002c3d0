"""What a re-ranker learns from: mentions in their text, candidates, and which of them are right.

The candidates are to be such as a new document will have. A first ranking that has seen the
answers of these very mentions puts the right concept first, and nothing is left to learn from
the context: gather with a linker that was not trained on them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.linking.candidates import Candidate
from biograft.linking.config import Query
from biograft.linking.linker import Linker
from biograft.linking.provenance import store_fingerprint
from biograft.linking.rankers import Context
from biograft.linking.rerank.config import RerankConfig
from biograft.linking.rerank.reranker import Asked, first_concepts

_NAMES_PER_CONCEPT = 4
"""Names asked for each concept wanted, since a concept may come by several."""
_AT_ONCE = 512


class GoldQuery(Query, Protocol):
    """A mention whose concepts are known."""

    @property
    def gold(self) -> frozenset[str]:
        """All ids that are right; none: NIL."""

    @property
    def needed(self) -> tuple[frozenset[str], ...]:
        """How the right ids belong together: several groups for a composite mention."""

    @property
    def document(self) -> str:
        """Where the mention stands; one document is never on both sides of a split."""


class NameRanker(Protocol):
    """Whatever gives candidates for the parts of queries, such as a linker."""

    def rank(self, queries: Sequence[Query], k: int) -> list[list[list[Candidate]]]:
        """Give k candidates for each part of each query."""


@dataclass(frozen=True, slots=True)
class RerankExample:
    """A mention with its candidates, each of another concept; ``right`` ends with NIL."""

    asked: Asked
    right: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of the mentions given."""

    given: int = 0
    composite: int = 0
    """Left out: which part means which concept is not known."""
    nil: int = 0
    missed: int = 0
    """The right concept was not among the candidates; NIL is then the answer to learn."""


@dataclass(frozen=True, slots=True)
class RerankData:
    """Examples to learn from, and others on which to fit the mix; what ranked first."""

    kb: KnowledgeBase
    train: tuple[RerankExample, ...]
    held_out: tuple[RerankExample, ...]
    counts: Counts
    first_ranking: str
    """What made the candidates."""
    weights: Mapping[str, float]
    """How its generators are weighed; none where a trained linker ranks, or who knows what."""

    def provenance(self) -> dict[str, Any]:
        """Say what the examples are, by hashes."""
        digest = hashlib.sha256()
        for example in (*self.train, *self.held_out):
            told = [(c.concept, c.name, c.score) for c in example.asked.candidates]
            digest.update(repr((*example.asked[:2], told, example.right)).encode())
        return {
            "kb": store_fingerprint(self.kb),
            "examples": digest.hexdigest(),
            "counts": asdict(self.counts),
            "first_ranking": self.first_ranking,
        }


def gather_examples(
    kb: KnowledgeBase,
    ranker: NameRanker,
    queries: Iterable[GoldQuery],
    config: RerankConfig,
    dev: Iterable[GoldQuery] | None = None,
) -> RerankData:
    """Gather the candidates of mentions; without ``dev``, some documents are held out of them."""
    found, counts = _examples(kb, ranker, list(queries), config)
    if dev is not None:
        train = [example for example, _ in found]
        held_out = [example for example, _ in _examples(kb, ranker, list(dev), config)[0]]
    else:
        held = _hold_out({document for _, document in found}, config)
        train = [example for example, document in found if document not in held]
        held_out = [example for example, document in found if document in held]
    if not any(any(example.right[:-1]) for example in train):
        raise ConfigError(
            f"training mentions: of {counts.given:,} given, {len(train):,} are left to learn from, "
            "and none has a right candidate; are their ids those of this store?"
        )
    linker = ranker if isinstance(ranker, Linker) else None
    search = linker.search if linker and not linker.ranker else None
    return RerankData(
        kb=kb,
        train=tuple(train),
        held_out=tuple(held_out),
        counts=counts,
        first_ranking=linker.described if linker else type(ranker).__name__,
        weights=dict(search.weights) if search else {},
    )


def _examples(
    kb: KnowledgeBase, ranker: NameRanker, queries: Sequence[GoldQuery], config: RerankConfig
) -> tuple[list[tuple[RerankExample, str]], Counts]:
    """Make examples, each with the name of its document, and count."""
    simple = [query for query in queries if len(query.parts) == 1]
    found, nil, missed = [], 0, 0
    for start in range(0, len(simple), _AT_ONCE):
        chunk = simple[start : start + _AT_ONCE]
        ranked = ranker.rank(chunk, config.n_candidates * _NAMES_PER_CONCEPT)
        for query, (names,) in zip(chunk, ranked, strict=True):
            candidates = first_concepts(names, config.n_candidates)
            wanted = kb.ids_of(query.gold)
            right = [candidate.concept in wanted for candidate in candidates]
            nil, missed = nil + (not query.gold), missed + (bool(query.gold) and not any(right))
            context = Context(query.context, query.start or 0, query.end or 0)
            asked = Asked(query.parts[0], context, tuple(candidates))
            example = RerankExample(asked, (*right, not any(right)))
            found.append((example, query.document or query.context or query.parts[0]))
    return found, Counts(len(queries), len(queries) - len(simple), nil, missed)


def _hold_out(documents: set[str], config: RerankConfig) -> set[str]:
    """Choose documents, at least one where there are two, the same ones for the same seed."""
    seed = config.training.seed
    ordered = sorted(documents, key=lambda name: hashlib.sha256(f"{seed} {name}".encode()).digest())
    n_held = max(1, round(config.held_out * len(ordered))) if len(ordered) > 1 else 0
    return set(ordered[:n_held])
