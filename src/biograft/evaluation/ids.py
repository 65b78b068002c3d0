"""Which ids of a gold standard are which concepts of a store.

Ids are compared in their canonical spelling. A gold id that the store does not know is tried
without its prefix, and one without prefix is tried with each prefix of the store; the latter
counts only if exactly one prefix fits, since a bare number may mean many things.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow.compute as pc

from biograft.evaluation.gold import LinkQuery
from biograft.ids import canonical_id
from biograft.kb import KnowledgeBase
from biograft.records import IdKind


class StoreIds:
    """The ids of a store's concepts, looked up once each."""

    def __init__(self, base: KnowledgeBase) -> None:
        self._base = base
        self._own: dict[str, frozenset[str]] = {}
        self._known: dict[str, str | None] = {}
        self._meant: dict[str, str] = {}
        self._prefixes: list[str] | None = None

    def own(self, concept: str) -> frozenset[str]:
        """Give all own ids of a concept (primary and alternate) in canonical spelling."""
        found = self._own.get(concept)
        if found is None:
            ids = [concept]
            row = self._base.find_row(concept)
            if row is not None:
                entry = self._base.concept_at(row)
                ids += [i.id for i in entry.ids if i.kind == IdKind.ALTERNATE]
            found = self._own[concept] = frozenset(map(canonical_id, ids))
        return found

    def known(self, gold: str) -> str | None:
        """Give a gold id as the store spells it, or None if the store does not know it."""
        if gold not in self._known:
            self._known[gold] = self._find(gold)
        return self._known[gold]

    def meant(self, gold: str) -> str:
        """Give the primary id of the one concept that a gold id is an own id of, else the id."""
        found = self._meant.get(gold)
        if found is None:
            known = self.known(gold)
            concepts = [] if known is None else self._base.by_id(known)
            sole = concepts[0].id if len(concepts) == 1 else known or gold
            found = self._meant[gold] = canonical_id(sole)
        return found

    def _find(self, gold: str) -> str | None:
        canonical = canonical_id(gold)
        if canonical in self._base:
            return canonical
        _, colon, bare = canonical.rpartition(":")
        if colon:
            return bare if bare in self._base else None
        spelled = [f"{prefix}:{canonical}" for prefix in self._store_prefixes()]
        fitting = [i for i in spelled if i in self._base]
        return canonical_id(fitting[0]) if len(fitting) == 1 else None

    def _store_prefixes(self) -> list[str]:
        if self._prefixes is None:
            found: set[str] = set()
            for table in ("concepts", "ids"):
                column = self._base.table(table).column("id")
                has_prefix = column.filter(pc.match_substring(column, ":"))
                heads = pc.replace_substring_regex(has_prefix, pattern=":.*", replacement="")
                found.update(canonical_prefix(p) for p in pc.unique(heads).to_pylist())
            self._prefixes = sorted(found - {""})
        return self._prefixes

    def named(self, name: str) -> frozenset[str]:
        """Give the concepts that have a name, so written if there are any, else normalised."""
        matches = self._base.find(name)
        exact = [match for match in matches if match.how == "exact"]
        return frozenset(canonical_id(match.concept) for match in exact or matches)


def canonical_prefix(prefix: str) -> str:
    """Bring a prefix to the spelling that canonical ids have; nothing if they have none."""
    return canonical_id(f"{prefix}:").removesuffix(":")


@dataclass(frozen=True, slots=True)
class Resolved:
    """Queries whose gold is spelled as the store does, and what the store does not know."""

    queries: tuple[LinkQuery, ...]
    unknown: frozenset[str]
    """Gold ids (or gold names) that no concept of the store has; no answer can match them."""
    n_unreachable: int
    """Queries that need one of them, and so cannot be right under the strict rule."""


def resolve_gold(queries: Iterable[LinkQuery], ids: StoreIds) -> Resolved:
    """Spell the gold ids of all queries as the store does; gold names become ids."""
    resolved, unknown, n_unreachable = [], set(), 0
    for query in queries:
        groups = []
        missing: set[str] = set()
        for group in query.needed:
            known = {gold: ids.known(gold) for gold in group}
            missing.update(gold for gold, found in known.items() if found is None)
            groups.append(frozenset(found or gold for gold, found in known.items()))
        for name in query.gold_names:
            found_ids = ids.named(name)
            if not found_ids:
                missing.add(name)
            groups.append(found_ids or frozenset({name}))
        unknown |= missing
        n_unreachable += any(group <= missing for group in groups)
        resolved.append(replace(query, gold=frozenset().union(*groups), needed=tuple(groups)))
    return Resolved(tuple(resolved), frozenset(unknown), n_unreachable)
