"""Mapping of gold ids to the concepts of a store.

Ids are compared in their canonical spelling. An unknown gold id is tried without its prefix, and
one without prefix with each prefix of the store; the latter counts only if exactly one prefix
matches, since a bare number is ambiguous.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from biograft.config import check_choice
from biograft.evaluation.gold import Gold, LinkQuery, empty_gold_error
from biograft.kb import KnowledgeBase
from biograft.kb.records import IdKind
from biograft.kb.vocabularies import canonical_id
from biograft.linking.queries import overlapping


class StoreIds:
    """The ids of a store's concepts, with cached lookups."""

    def __init__(self, base: KnowledgeBase) -> None:
        self._base = base
        self._own: dict[str, frozenset[str]] = {}
        self._spellings: dict[str, str | None] = {}
        self._meant: dict[str, str] = {}
        self._prefixes: list[str] | None = None

    def own(self, concept: str) -> frozenset[str]:
        """Return all own ids of a concept (primary and alternate) in canonical spelling."""
        own = self._own.get(concept)
        if own is None:
            ids = [concept]
            row = self._base.find_row(concept)
            if row is not None:
                entry = self._base.concept_at(row)
                ids += [i.id for i in entry.ids if i.kind == IdKind.ALTERNATE]
            own = self._own[concept] = frozenset(map(canonical_id, ids))
        return own

    def known(self, gold: str) -> str | None:
        """Return a gold id as the store spells it, or None if it is unknown."""
        if gold not in self._spellings:
            self._spellings[gold] = self._find(gold)
        return self._spellings[gold]

    def meant(self, gold: str) -> str:
        """Return the primary id of the only concept with a gold id; else the gold id."""
        primary = self._meant.get(gold)
        if primary is None:
            known = self.known(gold)
            concepts = [] if known is None else self._base.by_id(known)
            concept = concepts[0].id if len(concepts) == 1 else known or gold
            primary = self._meant[gold] = canonical_id(concept)
        return primary

    def _find(self, gold: str) -> str | None:
        canonical = canonical_id(gold)
        if canonical in self._base:
            return canonical
        _, colon, bare = canonical.rpartition(":")
        if colon:
            return bare if bare in self._base else None
        spelled = [f"{prefix}:{canonical}" for prefix in self._store_prefixes()]
        matching = [i for i in spelled if i in self._base]
        return canonical_id(matching[0]) if len(matching) == 1 else None

    def _store_prefixes(self) -> list[str]:
        if self._prefixes is None:
            prefixes: set[str] = set()
            for table in ("concepts", "ids"):
                ids = self._base.texts(table, "id")
                prefixes.update(i.partition(":")[0] for i in ids if ":" in i)
            self._prefixes = sorted({*map(canonical_prefix, prefixes)} - {""})
        return self._prefixes

    def named(self, name: str) -> frozenset[str]:
        """Return the concepts with a name: exact matches if there are any, else normalised ones."""
        matches = self._base.find(name)
        exact = [match for match in matches if match.how == "exact"]
        return frozenset(canonical_id(match.concept) for match in exact or matches)


def canonical_prefix(prefix: str) -> str:
    """Return the canonical spelling of a prefix; empty if canonical ids drop it."""
    return canonical_id(f"{prefix}:").removesuffix(":")


@dataclass(frozen=True, slots=True)
class Resolved:
    """Queries with gold ids as the store spells them, and the unknown ids."""

    queries: tuple[LinkQuery, ...]
    unknown: frozenset[str]
    """Gold ids (or gold names) that are not in the store; no answer can match them."""
    unreachable: tuple[bool, ...]
    """For each query whether it needs one of them, and cannot be right under the strict rule."""

    @property
    def n_unreachable(self) -> int:
        """Number of queries that need an unknown id."""
        return sum(self.unreachable)


class _ResolvedQuery(NamedTuple):
    query: LinkQuery
    unknown: set[str]
    unreachable: bool
    """Whether one of the concepts that it needs is unknown."""


def _resolve(query: LinkQuery, ids: StoreIds) -> _ResolvedQuery:
    groups: list[frozenset[str]] = []
    missing: set[str] = set()
    for group in query.needed:
        known = {gold: ids.known(gold) for gold in group}
        missing.update(gold for gold, spelling in known.items() if spelling is None)
        groups.append(frozenset(spelling or gold for gold, spelling in known.items()))
    for name in query.gold_names:
        found_ids = ids.named(name)
        if not found_ids:
            missing.add(name)
        groups.append(found_ids or frozenset({name}))
    resolved = replace(query, gold=frozenset().union(*groups), needed=tuple(groups))
    return _ResolvedQuery(resolved, missing, any(group <= missing for group in groups))


def resolve_gold(queries: Iterable[LinkQuery], ids: StoreIds) -> Resolved:
    """Convert the gold ids of all queries to the store's spelling; gold names become ids."""
    resolved = [_resolve(query, ids) for query in queries]
    return Resolved(
        tuple(each.query for each in resolved),
        frozenset().union(*(each.unknown for each in resolved)),
        tuple(each.unreachable for each in resolved),
    )


DROPS = {
    "overlapping": "overlapping another mention",
    "unknown-ids": "with an id that the knowledge base does not have",
}
"""Queries that published test sets leave out, with the names of their counts."""


def drop_queries(gold: Gold, base: KnowledgeBase, names: Sequence[str]) -> Gold:
    """Leave out queries as the authors of a paper do; the log of the gold counts them.

    A composite mention is left out if any of its concepts is unknown. A mention that overlaps and
    has an unknown id counts as overlapping.
    """
    for name in names:
        check_choice("drop", name, tuple(DROPS))
    ids, left = StoreIds(base), list(gold.queries)
    for name in (name for name in DROPS if name in names):
        if name == "overlapping":
            flags = overlapping(left)
        else:
            flags = [_resolve(query, ids).unreachable for query in left]
        gold.log.filter(DROPS[name], sum(flags))
        left = [query for query, flag in zip(left, flags, strict=True) if not flag]
    if not left:
        raise empty_gold_error("no query is left", gold.log, gold.log.path)
    return replace(gold, queries=tuple(left))
