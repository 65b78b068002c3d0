"""A sample to check before many terms are approved at once, and the errors to expect among them.

Terms with a risk (:attr:`ReviewTerm.bulk_risk`) are left for single decisions. The others are in
two parts: those found by a translated name, which their flag says, or the script of the preferred
name, and the rest. The sample of a part is its first terms in the order of a hash, which has
nothing to do with what is decided about them. Once all of it is decided, the number of wrong
suggestions of the part has exact bounds: those with which as many, or as few, in the sample are not
improbable (the hypergeometric form of Clopper and Pearson). What was decided beside the sample is
known, and taken off. The tails of the parts add up to those of a 95 % interval.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from hashlib import blake2b
from math import comb
from typing import Any

from biograft.kb.names import HAN_CHARACTER
from biograft.mapping.decisions import EXACT
from biograft.mapping.review_records import (
    APPROVE,
    OPEN,
    PROPOSED,
    TRANSLATED,
    ReviewFilter,
    ReviewItem,
)
from biograft.mapping.review_store import DEFAULT_QUEUE, ReviewStore

SAMPLE = 60
"""Terms of a sample of many: without a wrong one, at most 6 % are wrong."""
_TAIL = 0.025


@dataclass(frozen=True, slots=True)
class ReviewSample:
    """State of a sample, and of the terms that it stands for."""

    n_terms: int
    """Terms that wait for the reviewer, and would be approved."""
    n_sample: int
    """Terms of the sample, checked or not."""
    n_checked: int
    """Number of sampled terms with a decision."""
    n_wrong: int
    """Suggestions of the sample that were wrong."""
    interval: tuple[float, float] | None
    """Fraction of wrong suggestions among ``n_terms``; None: not all of the sample is checked."""
    left: dict[str, int]
    """Terms that wait for single decisions, by risk."""
    to_check: tuple[ReviewItem, ...] = ()
    """Terms of the sample that wait for the reviewer, those with translated names first."""

    def to_json(self) -> dict[str, Any]:
        """Return the sample as plain values."""
        names = ("n_terms", "n_sample", "n_checked", "n_wrong", "interval", "left")
        values = {name: getattr(self, name) for name in names}
        return {**values, "to_check": [item.to_json() for item in self.to_check]}

    def __str__(self) -> str:
        checked = f"{self.n_wrong:,} of {self.n_checked:,} checked are wrong"
        if self.interval is None:
            return f"{checked}, {self.n_sample - self.n_checked:,} of the sample are to be checked"
        low, high = (f"{100 * each:.1f}" for each in self.interval)
        return f"estimated at most {high} % wrong (95 % interval from {low}; {checked})"


def draw_sample(
    store: ReviewStore,
    queue: str = DEFAULT_QUEUE,
    where: ReviewFilter | None = None,
    *,
    reviewer: str,
    size: int = SAMPLE,
) -> ReviewSample:
    """Return the sample of the terms of a filter, with what was decided about it.

    Args:
        store: The review.
        queue: Name of the queue.
        where: Filter; all terms that it means are of the population, whatever their status.
        reviewer: Name of the reviewer who is to approve the terms.
        size: Terms of the sample, of each part.
    """
    where = replace(where or ReviewFilter(), status=None, waits_for=None)
    left: Counter[str] = Counter()
    parts: dict[bool, list[tuple[ReviewItem, bool | None]]] = {True: [], False: []}
    for item in store.items(queue, where, viewer=reviewer):
        verdict = _is_wrong(item, reviewer)
        if item.term.bulk_risk:
            left[item.term.bulk_risk] += verdict is None
        else:
            text, name = item.term.part or item.term.text, item.term.candidates[0].name
            is_translated = item.term.flag == TRANSLATED or _has_han(text) != _has_han(name)
            parts[is_translated].append((item, verdict))
    to_check: list[ReviewItem] = []
    checked: list[bool] = []
    n_terms, n_sample, wrong = 0, 0, [0.0, 0.0]
    tail = _TAIL / max(sum(map(bool, parts.values())), 1)
    for members in parts.values():
        sample = sorted(members, key=lambda each: _order(each[0]))[:size]
        to_check += [item for item, verdict in sample if verdict is None]
        said = [verdict for _, verdict in sample if verdict is not None]
        verdicts = [verdict for _, verdict in members]
        n_rest, n_known = verdicts.count(None), verdicts.count(True)
        n_terms, n_sample, checked = n_terms + n_rest, n_sample + len(sample), checked + said
        if n_rest:
            n, k = len(sample), sum(said)
            most = max_wrong(len(members), n, k, tail)
            least = len(members) - max_wrong(len(members), n, n - k, tail)
            # where more are known than the bound says, it is the fraction of the bound
            wrong[1] += min(max(most - n_known, most / len(members) * n_rest), n_rest)
            wrong[0] += max(least - n_known, 0)
    is_known = n_terms and not to_check
    interval = (wrong[0] / n_terms, wrong[1] / n_terms) if is_known else None
    counts = (n_terms, n_sample, len(checked), sum(checked))
    return ReviewSample(*counts, interval, dict(+left), tuple(to_check))


def max_wrong(n_items: int, n_sample: int, n_wrong: int, tail: float) -> int:
    """Return how many items may be wrong: P(at most ``n_wrong`` in the sample) is above ``tail``.

    Args:
        n_items: Items of the population.
        n_sample: Items drawn from it.
        n_wrong: Wrong items among those drawn.
        tail: Probability that the bound is too low.

    >>> max_wrong(10_000, 60, 0, 0.025)
    594
    """
    total = comb(n_items, n_sample)

    def is_possible(wrong: int) -> bool:
        right = n_items - wrong
        ways = (comb(wrong, i) * comb(right, n_sample - i) for i in range(n_wrong + 1))
        return sum(ways) > tail * total

    low, high = n_wrong, n_items - n_sample + n_wrong
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if is_possible(middle) else (low, middle - 1)
    return low


def _is_wrong(item: ReviewItem, reviewer: str) -> bool | None:
    """Return whether the first suggestion of a term is wrong; None if it waits for the reviewer."""
    state = item.state
    if state.status == OPEN or (state.status == PROPOSED and state.reviewer != reviewer):
        return None
    first = item.term.candidates[0].concept if item.term.candidates else None
    return state.opinion != (APPROVE, first, EXACT)


def _order(item: ReviewItem) -> bytes:
    return blake2b("\t".join(item.term.key).encode("utf-8", "replace")).digest()


def _has_han(text: str) -> bool:
    return HAN_CHARACTER.search(text) is not None
