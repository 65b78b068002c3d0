"""Optimisers for embedding tables: Adam, lazy Adam, Adagrad and row-wise Adagrad.

All but Adam update only the rows with gradients. A slot is a row of a batch's gradients; several
slots may belong to one row of a table.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from biograft.compute import njit
from biograft.graph.embedding.config import BOUNDS, OPTIMISERS, OptimiserConfig
from biograft.graph.embedding.parallel import run_parallel
from biograft.graph.embedding.translation import FAST, Floats

I32 = npt.NDArray[np.int32]
ADAM, LAZY_ADAM, ADAGRAD, ROW_ADAGRAD = range(len(OPTIMISERS) - 1)  # "auto" is one of these
FREE, UNIT, BALL = range(len(BOUNDS))


class Moments(NamedTuple):
    """Optimiser state of a table."""

    first: Floats  # (rows, size) for Adam, else empty
    second: Floats  # (rows, size); (rows, 1) for row-wise Adagrad


class UpdateRule(NamedTuple):
    """Settings of one optimiser step, as compiled loops take them."""

    kind: int
    rate: float
    beta1: float
    beta2: float
    epsilon: float
    correction1: float  # bias corrections of Adam's moments
    correction2: float
    bound: int


class RowGroups(NamedTuple):
    """Slots grouped by row of a table."""

    rows: I32  # (touched,)
    starts: I32  # (touched + 1,)
    order: I32  # slots, by row


def make_moments(table: Floats, config: OptimiserConfig) -> Moments:
    """Allocate the optimiser state of a table."""
    n_rows, size = len(table), int(np.prod(table.shape[1:]))
    kind = OPTIMISERS.index(config.kind)
    has_first = kind in (ADAM, LAZY_ADAM)
    first = np.zeros((n_rows if has_first else 0, size), table.dtype)
    second = np.zeros((n_rows, 1 if kind == ROW_ADAGRAD else size), table.dtype)
    return Moments(first, second)


def make_update_rule(config: OptimiserConfig, step: int, bound: str) -> UpdateRule:
    """Return the settings of step ``step`` (from 1)."""
    return UpdateRule(
        OPTIMISERS.index(config.kind),
        config.learning_rate,
        config.beta1,
        config.beta2,
        config.epsilon,
        1 - config.beta1**step,
        1 - config.beta2**step,
        BOUNDS.index(bound),
    )


@njit()
def group_rows(slots: I32, group_of: I32) -> RowGroups:
    """Group slots by row; ``group_of`` (-1 for every row) is scratch space, restored at the end."""
    rows = np.empty(len(slots), np.int32)
    counts = np.zeros(len(slots) + 1, np.int32)
    n_rows = 0
    for row in slots:
        if row < 0:
            continue
        if group_of[row] < 0:
            group_of[row] = n_rows
            rows[n_rows] = row
            n_rows += 1
        counts[group_of[row] + 1] += 1
    starts = np.cumsum(counts[: n_rows + 1]).astype(np.int32)
    order = np.empty(starts[-1], np.int32)
    next_slot = starts.copy()
    for slot in range(len(slots)):
        if slots[slot] >= 0:
            group = group_of[slots[slot]]
            order[next_slot[group]] = slot
            next_slot[group] += 1
    for row in rows[:n_rows]:
        group_of[row] = -1
    return RowGroups(rows[:n_rows], starts, order)


@njit(fastmath=FAST)
def _sum_gradients(slots: Floats, groups: RowGroups, group: int) -> Any:
    """Sum the gradients of a row into the first of its slots, in their order."""
    total = slots[groups.order[groups.starts[group]]]
    for slot in range(groups.starts[group] + 1, groups.starts[group + 1]):
        addend = slots[groups.order[slot]]
        for a in range(len(total)):
            total[a] += addend[a]
    return total


@njit(fastmath=FAST)
def _normalise(row: Floats, bound: int) -> None:
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


@njit(fastmath=FAST)
def _adam(row: Floats, gradient: Floats, first: Floats, second: Floats, rule: UpdateRule) -> None:
    kind = row.dtype.type
    beta1, beta2 = kind(rule.beta1), kind(rule.beta2)
    rate = kind(rule.rate / rule.correction1)
    root, epsilon = kind(1 / np.sqrt(rule.correction2)), kind(rule.epsilon)
    rest1, rest2 = kind(1) - beta1, kind(1) - beta2
    for a in range(len(row)):
        first[a] = beta1 * first[a] + rest1 * gradient[a]
        second[a] = beta2 * second[a] + rest2 * gradient[a] * gradient[a]
        row[a] -= rate * first[a] / (np.sqrt(second[a]) * root + epsilon)


@njit(fastmath=FAST)
def _adagrad(row: Floats, gradient: Floats, second: Floats, rule: UpdateRule) -> None:
    rate, epsilon = row.dtype.type(rule.rate), row.dtype.type(rule.epsilon)
    if rule.kind == ADAGRAD:
        for a in range(len(row)):
            second[a] += gradient[a] * gradient[a]
            row[a] -= rate * gradient[a] / (np.sqrt(second[a]) + epsilon)
        return
    total = row.dtype.type(0)
    for a in range(len(row)):
        total += gradient[a] * gradient[a]
    second[0] += total / row.dtype.type(len(row))
    scale = rate / (np.sqrt(second[0]) + epsilon)
    for a in range(len(row)):
        row[a] -= scale * gradient[a]


@njit()
def _step_rows(
    first: int,
    last: int,
    table: Floats,
    slots: Floats,
    groups_by_row: tuple[RowGroups, I32],
    state: tuple[Moments, UpdateRule],
) -> None:
    """Update rows with gradients; by Adam every row, also those without (group -1).

    Rows that never had a gradient stay unchanged: normalising them again would round them.
    """
    groups, group_of = groups_by_row
    moments, rule = state
    zero = np.zeros(table.shape[1], table.dtype)
    for index in range(first, last):
        row = index if rule.kind == ADAM else groups.rows[index]
        group = group_of[row] if rule.kind == ADAM else index
        gradient = zero
        if group >= 0:
            gradient = _sum_gradients(slots, groups, group)
        elif not (moments.first[row].any() or moments.second[row].any()):
            continue
        if rule.kind in (ADAM, LAZY_ADAM):
            _adam(table[row], gradient, moments.first[row], moments.second[row], rule)
        else:
            _adagrad(table[row], gradient, moments.second[row], rule)
        _normalise(table[row], rule.bound)


def step_table(
    table: Floats,
    slots: Floats,
    groups: RowGroups,
    moments: Moments,
    rule: UpdateRule,
    group_of: I32,
) -> None:
    """Make one step on a table of rows.

    Args:
        table: the rows.
        slots: gradients.
        groups: the slots of each row that has some.
        moments: state of the optimiser.
        rule: its settings in this step.
        group_of: -1 for every row; scratch space, restored at the end.
    """
    dense = rule.kind == ADAM
    if dense:
        group_of[groups.rows] = np.arange(len(groups.rows), dtype=np.int32)
    n = len(table) if dense else len(groups.rows)
    run_parallel(_step_rows, n, table, slots, (groups, group_of), (moments, rule))
    if dense:
        group_of[groups.rows] = -1
