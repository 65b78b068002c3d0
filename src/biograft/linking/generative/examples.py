"""What a generative linker learns from: mentions whose concepts are known, each with one name."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np

from biograft.kb import KnowledgeBase
from biograft.linking.forms import Forms
from biograft.linking.generative.asking import ask
from biograft.linking.generative.config import GenerativeConfig
from biograft.linking.generative.targets import TargetChooser
from biograft.linking.rerank.examples import GoldQuery
from biograft.streams.naming import NamingExample

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of the mentions given; those that are left out teach nothing."""

    given: int = 0
    composite: int = 0
    """Left out: which part means which concept is not known."""
    nil: int = 0
    unknown: int = 0
    """Left out: no concept of the store has the id, or none of its names may be generated."""
    overlapping: int = 0
    """Left out where that is asked for."""
    learnt: int = 0


@dataclass(frozen=True, slots=True)
class MentionNaming:
    """Examples that are the same in every epoch."""

    examples: tuple[NamingExample, ...]
    counts: Counts

    def __len__(self) -> int:
        return len(self.examples)

    def example(self, epoch: int, number: int) -> NamingExample:
        """Give an example by its number."""
        return self.examples[number]

    def provenance(self) -> dict[str, Any]:
        """Say what is learnt from, by counts and by a hash."""
        digest = hashlib.sha256()
        for example in self.examples:
            digest.update(repr((example.source, example.prompt, example.target)).encode())
        return {"examples": digest.hexdigest(), "mentions": asdict(self.counts)}


def gather_mentions(
    kb: KnowledgeBase,
    chooser: TargetChooser,
    queries: Sequence[GoldQuery],
    config: GenerativeConfig,
) -> MentionNaming:
    """Make an example of each mention that means one concept of the store (or one of several)."""
    kept = list(queries)
    reasons = {"composite": _is_composite, "nil": _is_nil}
    counts = {"given": len(kept)}
    if config.drop_overlapping:
        found = overlapping(kept)
        kept = [query for query, over in zip(kept, found, strict=True) if not over]
        counts["overlapping"] = sum(found)
    for name, is_so in reasons.items():
        counts[name] = sum(map(is_so, kept))
        kept = [query for query in kept if not is_so(query)]
    names = [chooser.names_of(kb.rows_of(query.gold)) for query in kept]
    known = [len(rows) > 0 for rows in names]
    kept, names = _only(kept, known), _only(names, known)
    counts |= {"unknown": len(known) - len(kept), "learnt": len(kept)}
    asked = Forms(kb, abbreviations=True, composites=False).of_queries(kept)
    rows = chooser.choose([form for form, _ in asked], names)
    examples = tuple(
        NamingExample(*ask(*each, config), chooser.text_of(row))
        for each, row in zip(asked, rows, strict=True)
    )
    return MentionNaming(examples, Counts(**counts))


def overlapping(queries: Sequence[GoldQuery]) -> list[bool]:
    """Say which mentions share characters with another one of their document."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for number, query in enumerate(queries):
        if query.document and query.start is not None and query.end is not None:
            places[query.document].append(number)
    flags = [False] * len(queries)
    for numbers in places.values():
        spans = np.array([(queries[n].start, queries[n].end) for n in numbers], np.int64)
        meets = (spans[:, None, 0] < spans[None, :, 1]) & (spans[None, :, 0] < spans[:, None, 1])
        for number, n_met in zip(numbers, meets.sum(axis=1).tolist(), strict=True):
            flags[number] = n_met > 1  # itself is one
    return flags


def _is_composite(query: GoldQuery) -> bool:
    return len(query.needed) > 1 or len(query.parts) > 1


def _is_nil(query: GoldQuery) -> bool:
    return not query.gold


def _only(values: Sequence[T], flags: Sequence[bool]) -> list[T]:
    return [value for value, flag in zip(values, flags, strict=True) if flag]
