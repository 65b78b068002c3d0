import random
from itertools import pairwise

import numpy as np
import pytest

from biograft.errors import NotFoundError
from biograft.kb import Hierarchy, hierarchy


def walk(edges, row):
    """Search breadth first, in plain Python."""
    queue, seen = [row], {row}
    for current in queue:
        for origin, target in edges:
            if origin == current and target not in seen:
                seen.add(target)
                queue.append(target)
    return queue[1:]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("many", [2, 2000])
def test_agrees_with_a_plain_walk_of_random_graphs_with_cycles(seed, many, monkeypatch):
    monkeypatch.setattr(hierarchy, "_MANY", many)
    monkeypatch.setattr(hierarchy, "_NARROW", 3)
    rng = random.Random(seed)
    n = rng.randrange(2, 25)
    up = sorted({(rng.randrange(n), rng.randrange(n)) for _ in range(rng.randrange(3 * n))})
    down = sorted((tail, head) for head, tail in up)
    heads, tails = np.array(up, np.uint32).reshape(-1, 2).T
    graph = Hierarchy(heads, tails, n)
    for row in range(n):
        above = walk(up, row)
        assert graph.ancestors(row) == above
        assert graph.descendants(row) == walk(down, row)
        assert list(graph.parents(row)) == [tail for head, tail in up if head == row]
        assert list(graph.children(row)) == [head for tail, head in down if tail == row]
        found = [other for other in range(n) if graph.is_a(row, other)]
        assert found == sorted({row, *above})


@pytest.mark.parametrize("seed", range(8))
def test_a_path_is_the_shortest_over_a_common_ancestor(seed):
    rng = random.Random(seed)
    n = rng.randrange(2, 15)
    up = {(rng.randrange(n), rng.randrange(n)) for _ in range(rng.randrange(2 * n))}
    heads, tails = np.array(sorted(up), np.uint32).reshape(-1, 2).T
    graph = Hierarchy(heads, tails, n)
    far = 10 * n
    steps = [[0 if a == b else 1 if (a, b) in up else far for b in range(n)] for a in range(n)]
    for via in range(n):
        steps = [[min(r[b], r[via] + steps[via][b]) for b in range(n)] for r in steps]
    for a in range(n):
        for b in range(n):
            shortest = min(steps[a][top] + steps[b][top] for top in range(n))
            climb, descent = graph.path(a, b)
            if shortest >= far:
                assert (climb, descent) == ([], [])
                continue
            assert len(climb) + len(descent) - 2 == shortest
            assert (climb[0], climb[-1], descent[-1]) == (a, descent[0], b)
            assert all(pair in up for pair in pairwise(climb))
            assert all((low, high) in up for high, low in pairwise(descent))


def test_is_a_takes_any_own_id_and_refuses_unknown_ones(build):
    concepts = [
        {"id": "A", "name": "a", "ids": ["X:1"], "relations": {"is-a": ["B"]}},
        {"id": "B", "name": "b", "relations": {"is-a": ["C"]}},
        {"id": "C", "name": "c", "relations": {"near": ["A"]}},
    ]
    base = build(concepts).base
    assert base.is_a("X:1", "C")
    assert base.is_a("A", "A")
    assert not base.is_a("C", "A")
    with pytest.raises(NotFoundError, match="no concept has the id 'Z'"):
        base.is_a("A", "Z")


def test_relations_of_a_hub_are_limited_and_counted(build):
    tails = [f"T{k}" for k in range(30)]
    hub = {"id": "H", "name": "h", "relations": {"near": [*tails, "H"], "is-a": tails[:2]}}
    base = build([hub, *({"id": t, "name": t, "relations": {"near": ["H"]}} for t in tails)]).base
    counts = [(c.relation, c.direction, c.n) for c in base.count_relations("H")]
    assert counts == [("near", "out", 31), ("is-a", "out", 2), ("near", "in", 30)]
    every, some = base.relations("H"), base.relations("H", limit=3)
    assert (len(every), len(some)) == (63, 8)
    assert set(some) < set(every)
    assert base.rows_by_name("T7") == [base.row("T7")]
