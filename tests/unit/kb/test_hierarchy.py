import itertools
import random

import numpy as np
import pytest

from biograft.kb.build import find_cycle


def reached(starts, edges):
    """Everything that a depth-first walk reaches from some nodes, themselves included."""
    seen, stack = set(), list(starts)
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack += edges.get(node, ())
    return seen


def caught_in_cycles(pairs):
    """The nodes on a cycle, or between two, by plain search."""
    up, down = {}, {}
    for child, parent in pairs:
        up.setdefault(child, []).append(parent)
        down.setdefault(parent, []).append(child)
    on_cycle = {node for node in up if node in reached(up[node], up)}
    return reached(on_cycle, up) & reached(on_cycle, down)


def find(pairs, n):
    columns = np.array(pairs, np.uint32).reshape(-1, 2)
    return find_cycle(columns[:, 0], columns[:, 1], n)


@pytest.mark.parametrize("seed", range(40))
def test_random_hierarchies_agree_with_a_depth_first_search(seed):
    rng = random.Random(seed)
    n = rng.choice([3, 8, 30])
    pairs = [(rng.randrange(n), rng.randrange(n)) for _ in range(rng.choice([2, n // 2, n, 2 * n]))]
    if seed % 3 == 0:
        pairs = [(max(pair), min(pair)) for pair in pairs if pair[0] != pair[1]]
    count, cycle = find(pairs, n)
    caught = caught_in_cycles(pairs)
    assert count == len(caught)
    assert bool(cycle) == bool(caught)
    if cycle:
        assert cycle[0] == cycle[-1]
        assert len(set(cycle)) == len(cycle) - 1
        assert all(step in pairs for step in itertools.pairwise(cycle))


@pytest.mark.parametrize(
    ("pairs", "count", "cycle"),
    [
        ([], 0, []),
        ([(1, 0), (2, 1), (3, 1), (3, 2)], 0, []),
        ([(1, 0), (1, 0)], 0, []),
        ([(0, 0)], 1, [0, 0]),
        ([(0, 1), (1, 0)], 2, [0, 1, 0]),
        ([(4, 3), (3, 2), (2, 3), (2, 1)], 2, [3, 2, 3]),
    ],
)
def test_what_hangs_on_a_cycle_does_not_count(pairs, count, cycle):
    assert find(pairs, 5) == (count, cycle)


def test_the_columns_given_stay_as_they_were():
    children, parents = np.array([1, 0, 2], np.uint32), np.array([0, 1, 0], np.uint32)
    find_cycle(children, parents, 3)
    assert (children.tolist(), parents.tolist()) == ([1, 0, 2], [0, 1, 0])
