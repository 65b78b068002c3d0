"""Operations on mapping sets: merge, chain, invert, compare, and what contradicts itself."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.kb.vocabularies import vocabulary_of
from biograft.mapping.rows import MADE_HERE, MappingRow
from biograft.mapping.sets import UNSPECIFIED_LICENSE, MappingSet
from biograft.mapping.sssom import NO_TERM_FOUND, concept_of, is_term

_INVERSE = {"broad": "narrow", "narrow": "broad"}
_CHAINED: Mapping[tuple[str, str], str] = {
    **{("exact", each): each for each in ("exact", "broad", "narrow", "close", "related")},
    **{(each, "exact"): each for each in ("broad", "narrow", "close", "related")},
    **{(each, each): each for each in ("broad", "narrow", "close")},
}
"""Relation of a chain of two mappings; of any other chain nothing follows."""
_UNITED = ("author_id", "author_label", "reviewer_id", "reviewer_label")
"""Slots that name several people with ``|`` between."""


@dataclass(frozen=True, slots=True)
class SetReport:
    """A set that was made of others, and how many rows became what."""

    result: MappingSet
    """The resulting set."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Number of rows by what happened to them."""

    def to_json(self) -> dict[str, int]:
        """Return the counts."""
        return {"n_rows": len(self.result.rows), **self.counts}


def merge_sets(sets: Sequence[MappingSet]) -> SetReport:
    """Put sets together; rows that say the same become one.

    Of these the decision of a person stands, then the later row; empty slots are filled from the
    other, and the people of both are named. What contradicts itself stays: see
    :func:`find_conflicts`.

    Args:
        sets: The sets.
    """
    if not sets:
        raise ConfigError("sets: expected one or more, found none")
    prefixes: dict[str, str] = {}
    merged: dict[tuple[str, ...], MappingRow] = {}
    n_read = 0
    for each in sets:
        renamed = _renamed(prefixes, each.prefixes)
        for row in each.rows:
            n_read += 1
            subject, target = each.key_of(row.subject_id), each.key_of(row.object_id)
            key = (subject, row.context, row.predicate_id, row.predicate_modifier, target)
            own = _with_prefixes(row, renamed) if renamed else row
            merged[key] = _united(merged[key], own) if key in merged else own
    result = MappingSet(
        rows=list(merged.values()),
        license=_license(sets),
        prefixes=prefixes,
        slots=_shared_slots(sets),
    )
    return SetReport(result, {"n_read": n_read, "n_same": n_read - len(merged)})


def _license(sets: Sequence[MappingSet]) -> str:
    """Return the licence that all sets have."""
    licenses = {each.license for each in sets}
    return licenses.pop() if len(licenses) == 1 else UNSPECIFIED_LICENSE


def _renamed(prefixes: dict[str, str], more: Mapping[str, str]) -> dict[str, str]:
    """Add prefixes to others; return new names of those that are taken by another namespace."""
    renamed: dict[str, str] = {}
    for prefix, namespace in more.items():
        name, n = prefix, 2
        while prefixes.get(name, namespace) != namespace:
            name, n = f"{prefix}{n}", n + 1
        prefixes[name] = namespace
        if name != prefix:
            renamed[prefix] = name
    return renamed


def _with_prefixes(row: MappingRow, renamed: Mapping[str, str]) -> MappingRow:
    changes: dict[str, Any] = {}
    for slot in ("subject_id", "object_id", "subject_source", "object_source"):
        prefix, colon, local = getattr(row, slot).partition(":")
        if colon and prefix in renamed:
            changes[slot] = f"{renamed[prefix]}:{local}"
    return replace(row, **changes) if changes else row


def _united(first: MappingRow, second: MappingRow) -> MappingRow:
    """Return one row of two that say the same."""
    order = sorted((first, second), key=lambda row: (row.is_decided, row.time), reverse=True)
    best, other = (row.to_cells() for row in order)
    cells = {**other, **{slot: cell for slot, cell in best.items() if cell}}
    for slot in _UNITED:
        names = "|".join(filter(None, (best[slot], other[slot])))
        cells[slot] = "|".join(dict.fromkeys(names.split("|")))
    return MappingRow.from_cells(cells)


def _shared_slots(sets: Sequence[MappingSet]) -> dict[str, object]:
    """Return the metadata that all sets have alike."""
    first = sets[0].slots
    return {k: v for k, v in first.items() if all(s.slots.get(k) == v for s in sets)}


def invert_set(mappings: MappingSet) -> SetReport:
    """Map the objects of a set to its subjects.

    Args:
        mappings: The set; rows without an object are left out.
    """
    rows, left_out = [], Counter[str]()
    for row in mappings.rows:
        if row.object_id == NO_TERM_FOUND:
            left_out["n_without_object"] += 1
            continue
        relation = _INVERSE.get(row.relation)
        rows.append(
            replace(
                row,
                subject_id=row.object_id,
                subject_label=row.object_label,
                subject_source=row.object_source,
                subject_source_version=row.object_source_version,
                object_id=row.subject_id,
                object_label=row.subject_label,
                object_source=row.subject_source,
                object_source_version=row.subject_source_version,
                predicate_id=f"skos:{relation}Match" if relation else row.predicate_id,
                mapping_justification="semapv:MappingInversion",
                slots=_swapped(row.slots),
            )
        )
    return SetReport(_derived(mappings, rows), left_out)


def _swapped(slots: Mapping[str, str]) -> dict[str, str]:
    """Exchange what slots say of subjects and of objects."""
    other = {"subject": "object", "object": "subject"}
    found = dict(MADE_HERE)
    for slot, said in slots.items():
        side, _, rest = slot.partition("_")
        if slot not in found:
            found[f"{other[side]}_{rest}" if side in other else slot] = said
    return found


def _derived(mappings: MappingSet, rows: list[MappingRow]) -> MappingSet:
    """Return a set made from another one, without its id."""
    return replace(mappings, rows=rows, id="", slots={})


def chain_sets(first: MappingSet, second: MappingSet) -> SetReport:
    """Map the subjects of one set to the objects of another, where one has what the other maps.

    Exact mappings pass on the relation of the other; broad, narrow and close ones chain with their
    like. The confidence is the product of both.

    Args:
        first: Set whose objects are the subjects of the second.
        second: The second set.
    """
    onward: defaultdict[str, list[MappingRow]] = defaultdict(list)
    for row in second.rows:
        onward[second.key_of(row.subject_id)].append(row)
    prefixes = dict(first.prefixes)
    renamed = _renamed(prefixes, second.prefixes)
    chains: dict[tuple[str, str, str], MappingRow] = {}
    left_out: Counter[str] = Counter(n_unmapped=0)
    for row in first.rows:
        next_rows = onward.get(first.key_of(row.object_id), [])
        left_out["n_unmapped"] += not next_rows
        for after in next_rows:
            relation = _CHAINED.get((row.relation, after.relation))
            if relation is None or row.predicate_modifier or after.predicate_modifier:
                left_out["n_nothing_follows"] += 1
                continue
            chained = _chained(row, _with_prefixes(after, renamed), relation)
            key = (chained.subject_id, chained.context, chained.object_id)
            if key not in chains or (chains[key].confidence or 0) < (chained.confidence or 0):
                chains[key] = chained
    result = MappingSet(
        rows=list(chains.values()), license=_license((first, second)), prefixes=prefixes
    )
    return SetReport(result, left_out)


def _chained(row: MappingRow, after: MappingRow, relation: str) -> MappingRow:
    known = [each.confidence for each in (row, after) if each.confidence is not None]
    confidence = None
    if known:
        confidence = known[0] * known[-1] if len(known) == 2 else known[0]
    via = f"{row.object_id} {row.object_label}".strip()
    if after.object_id == NO_TERM_FOUND:
        relation = "exact"
    return replace(
        row,
        predicate_id=f"skos:{relation}Match",
        object_id=after.object_id,
        object_label=after.object_label,
        object_source=after.object_source,
        object_source_version=after.object_source_version,
        mapping_justification="semapv:MappingChaining",
        confidence=confidence,
        comment=f"via {via}",
        slots=MADE_HERE,
    )


class ChangedMapping(NamedTuple):
    """A subject and an object of which two sets say something else."""

    before: MappingRow
    after: MappingRow

    @property
    def slots(self) -> dict[str, tuple[str, str]]:
        """Changed slots: name -> before and after."""
        old, new = self.before.to_cells(), self.after.to_cells()
        names = dict.fromkeys([*old, *new])
        pairs = {name: (old.get(name, ""), new.get(name, "")) for name in names}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


@dataclass(frozen=True, slots=True)
class SetDiff:
    """Difference of two mapping sets."""

    added: Sequence[MappingRow]
    """Rows of the second set only."""
    removed: Sequence[MappingRow]
    """Rows of the first set only."""
    changed: Sequence[ChangedMapping]
    """Rows of both with other values."""
    n_same: int
    """Number of equal rows."""


def diff_sets(old: MappingSet, new: MappingSet) -> SetDiff:
    """Compare two sets, by subject, context and object.

    Args:
        old: The earlier set.
        new: The later set.
    """

    def by_pair(mappings: MappingSet) -> dict[tuple[str, ...], MappingRow]:
        found: dict[tuple[str, ...], MappingRow] = {}
        for row in mappings.rows:
            pair = (mappings.key_of(row.subject_id), row.context, mappings.key_of(row.object_id))
            n = 0
            while (*pair, str(n)) in found:
                n += 1
            found[*pair, str(n)] = row
        return found

    before, after = by_pair(old), by_pair(new)
    both = [ChangedMapping(row, after[key]) for key, row in before.items() if key in after]
    changed = [each for each in both if set(each.slots) - _SPELLING]
    return SetDiff(
        added=[row for key, row in after.items() if key not in before],
        removed=[row for key, row in before.items() if key not in after],
        changed=changed,
        n_same=len(both) - len(changed),
    )


_SPELLING = {"subject_id", "object_id", "subject_source", "object_source"}
"""Slots that differ by the prefixes of a set; what they name was compared."""


class MappingConflict(NamedTuple):
    """Mappings that cannot all be right."""

    kind: str
    """One of :data:`CONFLICTS`."""
    subject: str
    """CURIE of the subject, or of the object that several subjects share."""
    rows: tuple[MappingRow, ...]
    """The mappings that contradict each other."""


CONFLICTS: Mapping[str, str] = {
    "rejected": "one row says that the subject is the object, another that it is not",
    "no concept": "one row says that the subject has no object, another names one",
    "relations": "two rows name different relations between one subject and one object",
    "objects": "one subject has several exact objects of one vocabulary",
    "subjects": "several concepts of one vocabulary have one exact object",
    "unknown": "the knowledge base does not have the object",
    "retired": "the object is retired in the knowledge base",
}


def find_conflicts(mappings: MappingSet, kb: KnowledgeBase | None = None) -> list[MappingConflict]:
    """Return what in a set contradicts itself, and objects that a knowledge base does not have.

    Args:
        mappings: The set.
        kb: Knowledge base of the objects; None: they are not looked up.
    """
    by_subject: defaultdict[tuple[str, str], list[MappingRow]] = defaultdict(list)
    by_object: defaultdict[str, list[MappingRow]] = defaultdict(list)
    for row in mappings.rows:
        by_subject[mappings.key_of(row.subject_id), row.context].append(row)
        if _is_exact(row) and not is_term(row.subject_id):
            by_object[mappings.key_of(row.object_id)].append(row)
    found: list[MappingConflict] = []
    for rows in by_subject.values():
        found += _of_subject(mappings, rows)
    for rows in by_object.values():
        for each in _several(rows, mappings, "subject_id"):
            found.append(MappingConflict("subjects", each[0].object_id, each))
    if kb is not None:
        found += _unknown(mappings.rows, kb)
    return found


def _is_exact(row: MappingRow) -> bool:
    has_object = row.object_id != NO_TERM_FOUND
    return has_object and not row.predicate_modifier and row.relation == "exact"


def _of_subject(mappings: MappingSet, rows: Sequence[MappingRow]) -> Iterable[MappingConflict]:
    """Return the conflicts among the mappings of one subject."""
    subject = rows[0].subject_id
    by_object: defaultdict[str, list[MappingRow]] = defaultdict(list)
    for row in rows:
        by_object[mappings.key_of(row.object_id)].append(row)
    for of_one in by_object.values():
        positive = [row for row in of_one if not row.predicate_modifier]
        if positive and len(positive) < len(of_one):
            yield MappingConflict("rejected", subject, tuple(of_one))
        if len({row.relation for row in positive}) > 1:
            yield MappingConflict("relations", subject, tuple(positive))
    positive = [row for row in rows if not row.predicate_modifier]
    nil = [row for row in positive if row.object_id == NO_TERM_FOUND]
    if nil and len(nil) < len(positive):
        yield MappingConflict("no concept", subject, tuple(positive))
    for each in _several([row for row in rows if _is_exact(row)], mappings, "object_id"):
        yield MappingConflict("objects", subject, each)


def _several(
    rows: Sequence[MappingRow], mappings: MappingSet, slot: str
) -> Iterable[tuple[MappingRow, ...]]:
    """Yield the rows of each vocabulary of which they name several concepts."""
    by_vocabulary: defaultdict[str, dict[str, MappingRow]] = defaultdict(dict)
    for row in rows:
        key = mappings.key_of(getattr(row, slot))
        by_vocabulary[vocabulary_of(key)].setdefault(key, row)
    return (tuple(each.values()) for each in by_vocabulary.values() if len(each) > 1)


def _unknown(rows: Sequence[MappingRow], kb: KnowledgeBase) -> Iterable[MappingConflict]:
    for row in rows:
        concept = concept_of(row.object_id)
        if not concept or kb.rows_of([concept]) or kb.by_xref(concept):
            continue
        kind = "retired" if kb.replacement(concept) else "unknown"
        yield MappingConflict(kind, row.subject_id, (row,))
