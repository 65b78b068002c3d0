"""Speed and accuracy of ranking the neighbours of all entities (PEPR).

The graph grows by preferential attachment (scale_free_graph.py, seed 0, 16 edges a node): 274,000
nodes and 4.4 million edges as the paper's, a tenth of that with --quick. All entities are ranked;
a sample is compared with 60 power iterations in float64 as scipy does them (sparse matrix times
a block of 16 columns), which is also the peer that is timed.

    python benchmarks/pepr.py --quick --json
    python benchmarks/pepr.py --json >benchmarks/results/pepr.json
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from machine import describe_command, describe_commit, peak_gib
from scale_free_graph import grow

from biograft.compute import describe_machine
from biograft.graph import PageRank, PeprConfig, Ranked
from biograft.graph.neighbours import rank_all
from biograft.graph.pepr import Adjacency, build_adjacency
from biograft.progress import Progress

NODES, QUICK_NODES, PER_NODE = 274_000, 27_400, 16
SAMPLE, QUICK_SAMPLE = 200, 48
_BATCH, _ROUNDS, _PEER_ROUNDS = 16, 60, 8
_DAMPING = 0.15

Floats = npt.NDArray[np.float64]


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Rank all entities, then compare a sample with the exact scores."""
    edges = grow(QUICK_NODES if options.quick else NODES, PER_NODE, 0)
    _rank(grow(200, PER_NODE, 1), options)  # compiles
    graph, ranking, seconds, memory = _rank(edges, options)
    generator = np.random.default_rng(17)
    n_sample = QUICK_SAMPLE if options.quick else SAMPLE
    sample = np.sort(generator.choice(graph.n_linked, n_sample, replace=False)).astype(np.int32)
    ranked = Ranked(ranking.positions[sample], ranking.scores[sample], 0, 0, 0)
    exact, peer_seconds = rank_by_powers(graph, sample)
    pushed = PageRank(graph, PeprConfig(exact=True)).rank(sample[:_BATCH])
    equal = ranked.positions == exact.positions
    same = np.sort(ranked.positions, axis=1) == np.sort(exact.positions, axis=1)
    return {
        "ms_per_source": 1000 * seconds["all"] / graph.n_linked,
        "top10_equal": float(same.all(axis=1).mean()),
        "top10_in_order": float(equal.all(axis=1).mean()),
        "largest_score_error": float(np.abs(ranked.scores - exact.scores).max()),
        "exact_agrees": bool((pushed.positions == exact.positions[:_BATCH]).all()),
        "peak_gib": memory,
        "seconds": seconds,
        "n_entities": graph.n_entities,
        "n_edges": len(edges),
        "n_certified": ranking.n_certified,
        "n_refined": ranking.n_refined,
        "n_uncertain": ranking.n_uncertain,
        "n_sample": n_sample,
        "scipy_ms_per_source_and_round": 1000 * peer_seconds / n_sample / _ROUNDS,
        "scipy_ms_per_source": 1000 * peer_seconds / n_sample / _ROUNDS * _PEER_ROUNDS,
        "scipy_rounds": _PEER_ROUNDS,
        "load_at_end": os.getloadavg()[0],
        "machine": describe_machine(),
        "commit": describe_commit(),
        "command": describe_command("pepr.py", sys.argv[1:]),
    }


def _rank(edges: npt.NDArray[np.int32], options: argparse.Namespace) -> tuple[Any, ...]:
    started, processor = time.perf_counter(), time.process_time()
    graph = build_adjacency(edges[:, 0], edges[:, 1], int(edges.max()) + 1)
    pagerank = PageRank(
        graph, PeprConfig(damping=_DAMPING, threads=options.threads, refine=options.refine)
    )
    with tempfile.TemporaryDirectory() as folder:
        progress = Progress(enabled=not options.json)
        ranking = rank_all(pagerank, Path(folder), {}, progress=progress)
    seconds = {
        "all": time.perf_counter() - started,
        "processor": time.process_time() - processor,
    }
    return graph, ranking, seconds, peak_gib()


def rank_by_powers(graph: Adjacency, sample: npt.NDArray[np.int32]) -> tuple[Ranked, float]:
    """Score by power iteration in float64, all of V for each entity, in batches."""
    from scipy import sparse

    n, z = graph.n_linked, graph.n_entities
    ones = np.ones(len(graph.neighbours))
    joined = sparse.csr_array((ones, graph.neighbours, graph.ends), shape=(n, n))
    moves = sparse.csr_array(joined @ sparse.diags_array(1 / graph.degrees))
    positions, scores, seconds = [], [], 0.0
    for first in range(0, len(sample), _BATCH):
        batch = sample[first : first + _BATCH]
        jump = np.full((n, len(batch)), _DAMPING / z)
        jump[batch, np.arange(len(batch))] = _DAMPING
        started, values = time.perf_counter(), jump / _DAMPING
        for _ in range(_ROUNDS):
            values = (1 - _DAMPING) * (moves @ values) + jump
        seconds += time.perf_counter() - started
        for lane, position in enumerate(batch):
            near = graph.neighbours[graph.ends[position] : graph.ends[position + 1]]
            order = np.lexsort((graph.row_of[near], -values[near, lane]))[:10]
            positions.append(near[order])
            scores.append(values[near[order], lane])
    return Ranked(np.array(positions), np.array(scores), 0, 0, 0), seconds


def main() -> None:
    """Read the options and print the result."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a graph of a tenth, a smaller sample")
    parser.add_argument("--json", action="store_true", help="only the result, as one JSON object")
    parser.add_argument("--threads", type=int, default=0, help="default: one for each core")
    parser.add_argument("--refine", action="store_true", help="solve uncertain entities exactly")
    options = parser.parse_args()
    result = measure(options)
    print(json.dumps(result, indent=None if options.json else 1))


if __name__ == "__main__":
    main()
