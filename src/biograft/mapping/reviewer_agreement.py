"""Agreement of two reviewers on the terms that both judged: Cohen's kappa, and disagreements.

A reviewer's opinion of a term is the first decision that stands: action, concept and relation. In a
queue with blind second opinions the two are independent; else the second reviewer saw the first
decision, and the agreement is higher than that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import asdict, dataclass
from typing import Any

from biograft.mapping.review_records import ReviewEvent
from biograft.mapping.review_store import DEFAULT_QUEUE, ReviewStore
from biograft.metrics import cohen_kappa


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """Agreement of two reviewers on the terms that both judged."""

    first: str
    second: str
    n_terms: int
    n_equal: int
    kappa: float | None
    """Cohen's kappa; None where both gave all terms the same opinion, which leaves it undefined."""


@dataclass(frozen=True, slots=True)
class ReviewAgreement:
    """Agreement of the reviewers of a queue."""

    queue: str
    """Name of the queue."""
    pairs: tuple[PairAgreement, ...]
    """Agreement of each two reviewers."""
    disagreements: tuple[tuple[str, str, ReviewEvent, ReviewEvent], ...]
    """Text and status of each term with two different opinions, and these."""

    def to_json(self) -> dict[str, Any]:
        """Return the agreement as plain values."""
        return {
            "queue": self.queue,
            "pairs": [asdict(pair) for pair in self.pairs],
            "disagreements": [
                {
                    "id": one.term_id,
                    "text": text,
                    "status": status,
                    "opinions": [_opinion(one), _opinion(two)],
                }
                for text, status, one, two in self.disagreements
            ],
        }


def review_agreement(store: ReviewStore, queue: str = DEFAULT_QUEUE) -> ReviewAgreement:
    """Return how far the reviewers of a queue agree.

    Args:
        store: The review.
        queue: Name of the queue.
    """
    items = {item.id: item for item in store.items(queue)}
    labels: dict[tuple[str, str], list[tuple[Hashable, Hashable]]] = defaultdict(list)
    different = []
    for id_, (one, two) in sorted(store.opinions(queue).items()):
        if id_ not in items or one.after is None or two.after is None:
            continue
        by_name = sorted((one, two), key=lambda event: event.reviewer)
        first, second = (event.after.opinion for event in by_name if event.after)
        labels[by_name[0].reviewer, by_name[1].reviewer].append((first, second))
        if one.after.opinion != two.after.opinion:
            item = items[id_]
            different.append((item.term.text, item.state.status, one, two))
    pairs = tuple(
        PairAgreement(*names, len(said), sum(a == b for a, b in said), _rounded(cohen_kappa(said)))
        for names, said in sorted(labels.items())
    )
    return ReviewAgreement(queue, pairs, tuple(different))


def _rounded(kappa: float | None) -> float | None:
    return None if kappa is None else round(kappa, 6)


def _opinion(event: ReviewEvent) -> dict[str, Any]:
    after = event.after
    said = {} if after is None else {"concept": after.concept, "name": after.name}
    relation = "exact" if after is None else after.relation
    place = {"reviewer": event.reviewer, "action": event.action, "comment": event.comment}
    return {**place, **said, "relation": relation, "event": event.id}
