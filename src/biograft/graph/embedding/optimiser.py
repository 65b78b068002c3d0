"""Steps of optimisers: on the vectors that a batch speaks of, or on all of a table (Adam)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from biograft.graph.embedding.config import BOUNDS, OPTIMISERS, OptimiserConfig
from biograft.graph.embedding.scoring import FAST, Floats, in_parts

I32 = npt.NDArray[np.int32]
ADAM, LAZY_ADAM, ADAGRAD, ROW_ADAGRAD = range(len(OPTIMISERS))
FREE, UNIT, BALL = range(len(BOUNDS))


class Moments(NamedTuple):
    """What an optimiser remembers of a table."""

    first: Floats  # (rows, size) for Adam, else empty
    second: Floats  # (rows, size); (rows, 1) for row-wise Adagrad


class Rule(NamedTuple):
    """One step of an optimiser, as compiled loops take it."""

    kind: int
    rate: float
    beta1: float
    beta2: float
    epsilon: float
    correction1: float  # of Adam's moments for their start at 0
    correction2: float
    bound: int


class Groups(NamedTuple):
    """Which slots speak of which rows of a table."""

    rows: I32  # (touched,)
    starts: I32  # (touched + 1,)
    order: I32  # places of slots, by row


def make_moments(table: Floats, config: OptimiserConfig) -> Moments:
    """Make room for what an optimiser remembers of a table seen as rows."""
    n_rows, size = len(table), int(np.prod(table.shape[1:]))
    kind = OPTIMISERS.index(config.kind)
    has_first = kind in (ADAM, LAZY_ADAM)
    first = np.zeros((n_rows if has_first else 0, size), table.dtype)
    second = np.zeros((n_rows, 1 if kind == ROW_ADAGRAD else size), table.dtype)
    return Moments(first, second)


def make_rule(config: OptimiserConfig, step: int, bound: str) -> Rule:
    """Prepare step number ``step`` (from 1)."""
    return Rule(
        OPTIMISERS.index(config.kind),
        config.learning_rate,
        config.beta1,
        config.beta2,
        config.epsilon,
        1 - config.beta1**step,
        1 - config.beta2**step,
        BOUNDS.index(bound),
    )


@numba.njit(cache=True, nogil=True)
def group_rows(slots: I32, places: I32) -> Groups:
    """Group slots by the row they speak of; ``places`` (-1 for every row) comes back so."""
    rows = np.empty(len(slots), np.int32)
    counts = np.zeros(len(slots) + 1, np.int32)
    n_rows = 0
    for row in slots:
        if row < 0:
            continue
        if places[row] < 0:
            places[row] = n_rows
            rows[n_rows] = row
            n_rows += 1
        counts[places[row] + 1] += 1
    starts = np.cumsum(counts[: n_rows + 1]).astype(np.int32)
    order = np.empty(starts[-1], np.int32)
    following = starts.copy()
    for slot in range(len(slots)):
        if slots[slot] >= 0:
            group = places[slots[slot]]
            order[following[group]] = slot
            following[group] += 1
    for row in rows[:n_rows]:
        places[row] = -1
    return Groups(rows[:n_rows], starts, order)


@numba.njit(fastmath=FAST, cache=True, nogil=True)
def _sum_up(slots: Floats, groups: Groups, group: int) -> Any:
    """Sum what falls on a row into the first of its slots, in their order."""
    total = slots[groups.order[groups.starts[group]]]
    for place in range(groups.starts[group] + 1, groups.starts[group + 1]):
        more = slots[groups.order[place]]
        for a in range(len(total)):
            total[a] += more[a]
    return total


@numba.njit(fastmath=FAST, cache=True, nogil=True)
def _bind(row: Floats, bound: int) -> None:
    if bound == FREE:
        return
    total = row.dtype.type(0)
    for a in range(len(row)):
        total += row[a] * row[a]
    if total == 0 or (bound == BALL and total <= 1):
        return
    scale = row.dtype.type(1) / np.sqrt(total)
    for a in range(len(row)):
        row[a] *= scale


@numba.njit(fastmath=FAST, cache=True, nogil=True)
def _adam(row: Floats, slope: Floats, first: Floats, second: Floats, rule: Rule) -> None:
    kind = row.dtype.type
    beta1, beta2 = kind(rule.beta1), kind(rule.beta2)
    rate = kind(rule.rate / rule.correction1)
    root, epsilon = kind(1 / np.sqrt(rule.correction2)), kind(rule.epsilon)
    rest1, rest2 = kind(1) - beta1, kind(1) - beta2
    for a in range(len(row)):
        first[a] = beta1 * first[a] + rest1 * slope[a]
        second[a] = beta2 * second[a] + rest2 * slope[a] * slope[a]
        row[a] -= rate * first[a] / (np.sqrt(second[a]) * root + epsilon)


@numba.njit(fastmath=FAST, cache=True, nogil=True)
def _adagrad(row: Floats, slope: Floats, second: Floats, rule: Rule) -> None:
    rate, epsilon = row.dtype.type(rule.rate), row.dtype.type(rule.epsilon)
    if rule.kind == ADAGRAD:
        for a in range(len(row)):
            second[a] += slope[a] * slope[a]
            row[a] -= rate * slope[a] / (np.sqrt(second[a]) + epsilon)
        return
    total = row.dtype.type(0)
    for a in range(len(row)):
        total += slope[a] * slope[a]
    second[0] += total / row.dtype.type(len(row))
    scale = rate / (np.sqrt(second[0]) + epsilon)
    for a in range(len(row)):
        row[a] -= scale * slope[a]


@numba.njit(cache=True, nogil=True)
def _step_touched(
    first: int,
    last: int,
    table: Floats,
    slots: Floats,
    groups: Groups,
    how: tuple[Moments, Rule],
) -> None:
    """Move the rows that a batch speaks of."""
    moments, rule = how
    for group in range(first, last):
        row = groups.rows[group]
        slope = _sum_up(slots, groups, group)
        if rule.kind == LAZY_ADAM:
            _adam(table[row], slope, moments.first[row], moments.second[row], rule)
        else:
            _adagrad(table[row], slope, moments.second[row], rule)
        _bind(table[row], rule.bound)


@numba.njit(cache=True, nogil=True)
def _step_all(
    first: int,
    last: int,
    table: Floats,
    slots: Floats,
    falling: tuple[Groups, I32],
    how: tuple[Moments, Rule],
) -> None:
    """Move every row by Adam, also those on which nothing falls (group -1).

    A row on which nothing ever fell stays as it is: to bind it anew would round it each time.
    """
    groups, group_of = falling
    moments, rule = how
    nothing = np.zeros(table.shape[1], table.dtype)
    for row in range(first, last):
        slope = nothing
        if group_of[row] >= 0:
            slope = _sum_up(slots, groups, group_of[row])
        elif not (moments.first[row].any() or moments.second[row].any()):
            continue
        _adam(table[row], slope, moments.first[row], moments.second[row], rule)
        _bind(table[row], rule.bound)


def step_table(
    table: Floats, slots: Floats, groups: Groups, moments: Moments, rule: Rule, places: I32
) -> None:
    """Make one step on a table seen as rows; ``places`` holds -1 for every row."""
    if rule.kind != ADAM:
        in_parts(_step_touched, len(groups.rows), table, slots, groups, (moments, rule))
        return
    places[groups.rows] = np.arange(len(groups.rows), dtype=np.int32)
    in_parts(_step_all, len(table), table, slots, (groups, places), (moments, rule))
    places[groups.rows] = -1
