"""Approximate search over a graph of neighbours (HNSW, by faiss): for very many names.

Nearly always right and a hundred times quicker than scanning a million vectors; the graph takes
about a minute for each 200,000 names to build, and the memory of all vectors once more. The rows
that it finds are scored exactly, as in the exact search. Built by several threads, two graphs of
the same vectors may differ in a few links.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from biograft.arrays.files import check_ends, check_length, check_range
from biograft.errors import MissingExtraError, StoreError
from biograft.linking.dense.manifest import DENSE_INDEX
from biograft.linking.dense.search import RowHits, no_hits, rank, rescore
from biograft.linking.dense.vectors import CHUNK, Vectors, VectorTable

GRAPH = "graph.faiss"
_LINKS, _BUILD_WIDTH, _SEARCH_WIDTH = 32, 100, 64


def load_faiss() -> Any:
    """Import faiss, or say which extra brings it."""
    try:
        import faiss
    except ImportError as error:
        raise MissingExtraError("faiss", "approximate dense search") from error
    return faiss


class GraphSearch:
    """Finds rows by walking the graph."""

    def __init__(self, graph: Any, vectors: VectorTable) -> None:
        self._graph, self.vectors = graph, vectors

    @classmethod
    def build(cls, vectors: VectorTable, folder: Path) -> None:
        """Link all vectors and write the graph into a folder."""
        faiss = load_faiss()
        graph = faiss.IndexHNSWFlat(vectors.dim, _LINKS, faiss.METRIC_INNER_PRODUCT)
        graph.hnsw.efConstruction = _BUILD_WIDTH
        for start in range(0, vectors.n_rows, CHUNK):
            graph.add(vectors.chunk(start, start + CHUNK).numpy())
        faiss.write_index(graph, str(folder / GRAPH))

    @classmethod
    def open(cls, vectors: VectorTable, folder: Path) -> GraphSearch:
        """Read the graph of a folder."""
        path = folder / GRAPH
        try:
            graph = load_faiss().read_index(str(path))
        except RuntimeError as error:
            raise StoreError(f"{path}: damaged; run `biograft index` again") from error
        if (graph.ntotal, graph.d) != (vectors.n_rows, vectors.dim):
            raise StoreError(f"{path}: is of other vectors; run `biograft index` again")
        try:
            _check_graph(graph)
        except ValueError as error:
            raise DENSE_INDEX.damaged(path, error) from error
        return cls(graph, vectors)

    def search(self, queries: Vectors, k: int) -> RowHits:
        """Find about the k best rows of each query: queries (n, dim)."""
        hits = no_hits(len(queries), k)
        n_found = min(k, self.vectors.n_rows)
        if not n_found or not len(queries):
            return hits
        self._graph.hnsw.efSearch = max(_SEARCH_WIDTH, 2 * k)
        _, rows = self._graph.search(np.ascontiguousarray(queries), n_found)
        rows, scores = rank(rescore(self.vectors, queries, rows), rows)
        hits.rows[:, :n_found], hits.scores[:, :n_found] = rows, scores
        return hits


def _check_graph(graph: Any) -> None:
    """Refuse links that lead out of the graph, or to a place that is not on their level.

    faiss, which follows them unseen, looks at some of this itself, and at no level.
    """
    faiss = load_faiss()
    storage = faiss.downcast_index(graph.storage) if isinstance(graph, faiss.IndexHNSW) else None
    if not isinstance(storage, faiss.IndexFlat) or storage.d != graph.d:
        raise ValueError("expected a graph of whole vectors")
    check_length("codes", _view(storage.codes), graph.ntotal * graph.d * 4)
    hnsw = graph.hnsw
    levels, offsets, links = _view(hnsw.levels), _view(hnsw.offsets), _view(hnsw.neighbors)
    before = faiss.vector_to_array(hnsw.cum_nneighbor_per_level).astype(np.int64)
    check_length("levels", levels, graph.ntotal)
    check_length("offsets", offsets, graph.ntotal + 1)
    check_ends("levels below", before, before[-1] if len(before) else 0)
    check_range("levels", levels, 1, len(before) - 1)
    check_ends("offsets", offsets, len(links))
    if (np.diff(offsets.astype(np.int64)) != before[levels]).any():
        raise ValueError("offsets: expected as many links as there are on the levels of a vector")
    check_range("links", links, -1, graph.ntotal - 1)
    for level in range(1, int(levels.max(initial=1))):
        on_it = offsets[:-1][levels > level].astype(np.int64)
        found = links[on_it[:, None] + np.arange(before[level], before[level + 1])]
        if (levels[found[found >= 0]] <= level).any():
            raise ValueError("links: one leads to a vector that is not on its level")
    if graph.ntotal:
        check_range("entry", np.array(hnsw.entry_point), 0, graph.ntotal - 1)
        check_range("highest level", np.array(hnsw.max_level), 0, int(levels[hnsw.entry_point]) - 1)


def _view(vector: Any) -> Any:
    """Look into a vector of C++ without copying it."""
    size = vector.size()
    return load_faiss().rev_swig_ptr(vector.data(), size) if size else np.zeros(0, np.int64)
