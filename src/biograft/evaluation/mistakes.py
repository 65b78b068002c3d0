"""What kind of error a wrong answer is, with the names a person needs to see why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from biograft.evaluation.linking import LinkingResult, QueryRow
from biograft.ids import canonical_id
from biograft.kb import KnowledgeBase


class Kind(StrEnum):
    """Kinds of error, the first that fits counts."""

    NO_ANSWER = "no answer"
    NIL_GIVEN = "NIL given for a concept"
    NIL_MISSED = "concept given for NIL"
    NOT_IN_STORE = "gold concept not in the store"
    TIED = "tied with the gold concept"
    PART_MISSED = "a part of a composite missed"
    SAME_NAME = "another concept of that name"
    BROADER = "broader concept"
    NARROWER = "narrower concept"
    RANKED_LOWER = "gold concept ranked lower"
    NOT_FOUND = "gold concept not found"


@dataclass(frozen=True, slots=True)
class Mistake:
    """A wrong answer beside the right one."""

    mention: str
    document: str
    gold: str
    gold_name: str
    predicted: str
    predicted_name: str
    matched: str
    """The name that was found for the predicted concept."""
    rank: int | None
    kind: Kind


def find_mistakes(result: LinkingResult, base: KnowledgeBase) -> list[Mistake]:
    """Give all queries whose first answer is not surely right, in the order asked."""
    unknown = result.resolved.unknown
    return [_mistake(row, base, unknown) for row in result.rows if row.right < 1]


def count_kinds(found: Sequence[Mistake]) -> dict[Kind, int]:
    """Count mistakes by kind, the most frequent first."""
    counts = Counter(mistake.kind for mistake in found)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _mistake(row: QueryRow, base: KnowledgeBase, unknown: frozenset[str]) -> Mistake:
    gold = sorted(row.query.gold)
    firsts = [ranked[0] for ranked in row.answers if ranked]
    return Mistake(
        row.query.mention,
        row.query.document,
        " ".join(gold) or "NIL",
        "; ".join(dict.fromkeys(_name(i, base) for i in gold)),
        " ".join(dict.fromkeys(c.concept for c in firsts)) or "NIL",
        "; ".join(dict.fromkeys(c.concept_name for c in firsts)),
        "; ".join(dict.fromkeys(c.name for c in firsts)),
        row.rank,
        _kind(row, base, unknown),
    )


def _name(identifier: str, base: KnowledgeBase) -> str:
    row = base.find_row(identifier)
    return base.name_at(row) if row is not None else "(not in the store)"


def _kind(row: QueryRow, base: KnowledgeBase, unknown: frozenset[str]) -> Kind:
    if row.query.is_nil:
        return Kind.NIL_MISSED
    if row.answered_nil:
        return Kind.NIL_GIVEN if any(row.answers) else Kind.NO_ANSWER
    if row.query.gold <= unknown:
        return Kind.NOT_IN_STORE
    if row.right > 0:
        return Kind.TIED
    if _answers_some(row, base):
        return Kind.PART_MISSED
    related = _related(row, base)
    if related is not None:
        return related
    return Kind.NOT_FOUND if row.rank is None else Kind.RANKED_LOWER


def _answers_some(row: QueryRow, base: KnowledgeBase) -> bool:
    gold = base.ids_of(row.query.gold)
    return any(ranked and ranked[0].concept in gold for ranked in row.answers)


def _related(row: QueryRow, base: KnowledgeBase) -> Kind | None:
    """Say how the predicted concept is related to a gold one, if it is."""
    gold = base.ids_of(row.query.gold)
    for ranked in row.answers:
        if not ranked or canonical_id(ranked[0].concept) not in base:
            continue
        if any(match.concept in gold for match in base.find(ranked[0].name)):
            return Kind.SAME_NAME
        if any(ranked[0].concept in base.parents(concept) for concept in gold):
            return Kind.BROADER
        if any(ranked[0].concept in base.children(concept) for concept in gold):
            return Kind.NARROWER
    return None
