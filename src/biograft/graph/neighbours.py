"""Table of the best neighbours of every entity of a store: ranked in blocks, read by row.

A folder of numpy arrays and a manifest. The edges of row ``r`` are those from ``ends[r]`` up to
``ends[r + 1]``: best neighbour first, with all edges that join the entity to it.

===============  ==============================================================
``ends``         int64, one more than entities
``neighbours``   int32, row of the neighbour
``relations``    uint16, index of the relation in the store
``directions``   uint8, index in ``DIRECTIONS``: ``out`` if the entity is the head
``types``        int32, index of the neighbour's first type in the store, -1 if it has none
``scores``       float32, the neighbour's score
===============  ==============================================================

While it is built, results are written to a working folder as they come. A later call with the same
graph and configuration resumes there; any other call starts anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import biograft
from biograft.arrays import Array, Flags, Float32s, Floats, Int32s, Ints
from biograft.artifacts import (
    ArraySpec,
    ArtifactKind,
    check_length,
    check_range,
    create_array,
    describe_files,
    new_file,
    new_folder,
    open_array,
    open_arrays,
    peek,
    save_arrays,
    sole_writer,
)
from biograft.compute import n_cores
from biograft.errors import ConfigError, NotFoundError, OutputError, StoreError, nearest
from biograft.graph.config import PeprConfig
from biograft.graph.pepr import Adjacency, PageRank, Ranked, build_adjacency
from biograft.graph.triples import Triples, graph_fingerprint, read_triples
from biograft.progress import Progress

if TYPE_CHECKING:
    from biograft.kb import KnowledgeBase

NEIGHBOURS = ArtifactKind(
    format="biograft-neighbours",
    version=1,
    called="table of neighbours",
    remedy="make it again with `biograft graph neighbours`",
    keys=("store", "config", "files"),
)
_LARGEST = float(np.finfo(np.float32).max)
COLUMNS = {
    "ends": ArraySpec("int64", ("entities + 1",), ends="edges"),
    "neighbours": ArraySpec("int32", ("edges",), low=0, below="entities"),
    "relations": ArraySpec("uint16", ("edges",), below="relations"),
    "directions": ArraySpec("uint8", ("edges",), below="directions"),
    "types": ArraySpec("int32", ("edges",), low=-1, below="types"),
    "scores": ArraySpec("float32", ("edges",), low=-_LARGEST, high=_LARGEST),
}
DIRECTIONS = ("out", "in")


@dataclass(frozen=True, slots=True)
class Edges:
    """Edges to neighbours as parallel arrays; a block is padded with -1 (scores with 0)."""

    neighbours: Int32s
    """Rows of the neighbouring concepts."""
    relations: Int32s
    """Indices of the relations."""
    directions: Int32s
    """Indices in ``DIRECTIONS``: 0 if the concept is the head of the relation, 1 if the tail."""
    types: Int32s
    """Indices of the neighbours' semantic types."""
    scores: Float32s
    """Personalised PageRank of the neighbours."""

    def __len__(self) -> int:
        return len(self.neighbours)


class NeighbourTable:
    """The best neighbours of all entities of one store, opened for reading.

    Args:
        folder: Folder of ``biograft graph neighbours``.
        manifest: Its manifest.
        kb: Knowledge base that it was made from.
    """

    def __init__(self, folder: Path, manifest: dict[str, Any], kb: KnowledgeBase) -> None:
        self.folder, self.manifest = folder, manifest
        try:
            config = manifest["config"]
            k = config.get("k") if isinstance(config, Mapping) else None
            if not isinstance(k, int) or k < 1:
                raise ValueError(f"config.k: expected a number of at least 1, found {k!r}")
            self.k = k
            self._columns = open_arrays(
                folder,
                COLUMNS,
                entities=len(kb),
                relations=len(kb.relation_names),
                types=len(kb.types),
                directions=len(DIRECTIONS),
            )
        except ValueError as error:
            raise NEIGHBOURS.damaged(folder, error) from error

    @classmethod
    def open(cls, folder: str | Path, kb: KnowledgeBase) -> NeighbourTable:
        """Open the table in a folder; refuse one made from another store.

        Args:
            folder: The folder.
            kb: The knowledge base that it was made from.

        Returns:
            The table.

        Raises:
            StoreError: The table is missing, damaged, or made from another knowledge base.
        """
        folder = Path(folder)
        manifest = NEIGHBOURS.read(folder)
        NEIGHBOURS.check_files(folder, manifest)
        if manifest["store"] != graph_fingerprint(kb):
            raise StoreError(
                f"{folder}: made from another knowledge base than {kb.folder}; {NEIGHBOURS.remedy}"
            )
        return cls(folder, manifest, kb)

    def __len__(self) -> int:
        return len(self._columns["ends"]) - 1

    def __getitem__(self, row: int) -> Edges:
        """Return all edges of one entity, best neighbour first."""
        if not 0 <= row < len(self):
            raise NotFoundError(f"row {row}: expected 0 to {len(self) - 1}")
        ends = self._columns["ends"]
        return self._edges(np.arange(ends[row], ends[row + 1]))

    def gather(self, rows: npt.ArrayLike, n: int | None = None) -> Edges:
        """Return the edges to the ``n`` best neighbours of many entities as a padded block.

        A neighbour that is joined by two relations has two edges. A row of -1 has none.

        Args:
            rows: Rows of entities, in any shape.
            n: Neighbours of each entity; default: all, at most k.

        Returns:
            A block of the shape of ``rows``, with one axis more, as long as the most edges.

        Raises:
            NotFoundError: There is no such row.
        """
        rows = np.asarray(rows, np.int64)
        if not np.all((rows >= -1) & (rows < len(self))):
            raise NotFoundError(f"rows: expected -1 to {len(self) - 1}")
        n = self.k if n is None else n
        if n < 0:
            raise ConfigError(f"n: expected 0 or more, found {n}")
        ends = self._columns["ends"]
        valid = rows >= 0
        starts = np.where(valid, ends[rows], 0)
        counts = np.where(valid, ends[rows + 1] - starts, 0)
        slots = np.arange(counts.max(initial=0))
        mask = slots < counts[..., None]  # (*rows, edges)
        if not len(self._columns["scores"]):  # nothing can be gathered
            names = ("neighbours", "relations", "directions", "types")
            padding = {name: np.full(mask.shape, -1, np.int32) for name in names}
            return Edges(scores=np.zeros(mask.shape, np.float32), **padding)
        indices = np.where(mask, starts[..., None] + slots, 0)
        mask &= _rank(self._columns["neighbours"][indices]) < n
        n_edges = mask.sum(axis=-1).max(initial=0)
        return self._edges(indices[..., :n_edges], mask[..., :n_edges])

    def _edges(self, indices: Ints, mask: Flags | bool = True) -> Edges:
        columns = {name: self._columns[name][indices] for name in COLUMNS if name != "ends"}
        scores = np.where(mask, columns.pop("scores"), np.float32(0))
        integers = {
            name: np.where(mask, v.astype(np.int32), np.int32(-1)) for name, v in columns.items()
        }
        return Edges(scores=scores, **integers)


def _rank(neighbours: npt.NDArray[np.integer]) -> Ints:
    """Number the neighbours of a block of edges from 0, edges to the same one alike.

    Args:
        neighbours: Neighbours along the last axis, those of a row that are the same in succession.
    """
    others = np.diff(neighbours, axis=-1, prepend=neighbours[..., :1]) != 0
    ranks: Ints = others.cumsum(axis=-1)
    return ranks


BLOCK = 4096
"""Entities after which results are flushed to disk."""
_CHUNK = 32
"""Entities that a thread ranks at a time."""
_STATE = "state.json"
_RESULTS: dict[str, type[np.generic]] = {"positions": np.int32, "scores": np.float64}
_COUNTS = ("n_certified", "n_refined", "n_uncertain")


def rank_all(
    pagerank: PageRank,
    work: Path,
    provenance: dict[str, Any],
    *,
    progress: Progress | None = None,
) -> Ranked:
    """Rank the neighbours of every linked entity.

    Args:
        pagerank: what ranks them.
        work: the folder where results are kept from block to block.
        provenance: what the ranking is made from; results of the same are resumed.
        progress: receives the number of ranked entities.

    Returns:
        the best neighbours of all linked entities, by position.

    Raises:
        OutputError: if the working folder holds other files.
    """
    progress = progress or Progress()
    n, k = pagerank.graph.n_linked, pagerank.config.k
    provenance = {**provenance, "shape": [n, k], "made_by": biograft.__version__}
    positions, scores, state = _resume(work, provenance, (n, k))
    if state["n_done"] < n:
        progress.start("solve pilots")
        pagerank.prepare()
    progress.start("rank neighbours", state["n_done"] / max(n, 1))
    with ThreadPoolExecutor(pagerank.config.threads or n_cores()) as pool:
        for start in range(state["n_done"], n, BLOCK):
            stop = min(start + BLOCK, n)
            chunks = [
                np.arange(first, min(first + _CHUNK, stop), dtype=np.int32)
                for first in range(start, stop, _CHUNK)
            ]
            for chunk, ranked in zip(chunks, pool.map(pagerank.rank, chunks), strict=True):
                positions[chunk], scores[chunk] = ranked.positions, ranked.scores
                for name in _COUNTS:
                    state[name] += getattr(ranked, name)
                progress.advance(len(chunk), (chunk[-1] + 1) / n)
            positions.flush()
            scores.flush()
            with new_file(work / _STATE, overwrite=True) as file:
                state |= {"n_done": stop, "provenance": provenance}
                file.write(json.dumps(state).encode())
    progress.finish()
    counts = {name: state[name] for name in _COUNTS}
    return Ranked(np.asarray(positions), np.asarray(scores), **counts)


def _resume(work: Path, provenance: dict[str, Any], shape: tuple[int, int]) -> tuple[Any, Any, Any]:
    """Resume the results of an interrupted call, or start anew; refuse to remove other files."""
    state, paths = peek(work / _STATE), [work / f"{name}.npy" for name in _RESULTS]
    kinds = _RESULTS.values()
    with contextlib.suppress(ValueError):  # of damaged results
        if state.get("provenance") == provenance:
            columns = [
                open_array(path, kind, n_axes=2, mode="r+")
                for path, kind in zip(paths, kinds, strict=True)
            ]
            for name, column in zip(_RESULTS, columns, strict=True):
                check_length(name, column, *shape)
            check_range("positions", columns[0], -1, shape[0] - 1)
            return columns[0], columns[1], state
    if work.exists():
        names = {path.name for path in work.iterdir()} if work.is_dir() else {work.name}
        names -= {_STATE, *(path.name for path in paths)}
        foreign = [name for name in names if not name.startswith(f".{_STATE}.")]
        if foreign:
            raise OutputError(
                f"{work}: unfinished work is kept there, and it holds {min(foreign)}, which is "
                "none; move that away, or choose another folder"
            )
        shutil.rmtree(work)
    work.mkdir(parents=True)
    make = create_array if shape[0] else lambda _, kind, shape: np.zeros(shape, kind)
    columns = [make(path, kind, shape) for path, kind in zip(paths, kinds, strict=True)]
    return columns[0], columns[1], {"n_done": 0, **dict.fromkeys(_COUNTS, 0)}


def build_neighbours(
    kb: KnowledgeBase,
    folder: Path,
    config: PeprConfig | None = None,
    *,
    start: Floats | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Write the table of neighbours of every entity. An interrupted call resumes when repeated.

    Args:
        kb: the knowledge base.
        folder: the folder to write.
        config: how neighbours are scored, and how many are kept.
        start: the start vector of ``config.rounds`` rounds, by row.
        overwrite: replace a folder.
        progress: receives stages and finished entities.

    Returns:
        the manifest of the table.

    Raises:
        ConfigError: if a relation or the start vector does not fit the knowledge base.
        OutputError: if the folder exists, or that for unfinished work holds other files.
    """
    config, progress = config or PeprConfig(), progress or Progress()
    with sole_writer(folder):
        is_empty = folder.is_dir() and not any(folder.iterdir())
        if folder.exists() and not overwrite and not is_empty:
            raise OutputError(
                f"{folder}: exists already; remove it, choose another folder, or allow it to be "
                "replaced (--overwrite)"
            )
        triples = read_triples(kb).of_split("train")
        for name in config.relations:
            if name not in triples.relation_names:
                raise ConfigError(
                    f"--relations: the store has no relation {name!r}; "
                    f"{nearest(name, triples.relation_names)}"
                )
        if config.relations:
            selected = [triples.relation_names.index(name) for name in config.relations]
            triples = triples.where(np.isin(triples.relations, selected))
        progress.start("join neighbours")
        graph = build_adjacency(triples.heads, triples.tails, len(kb))
        pagerank = PageRank(graph, config, start=start)
        settings = {**asdict(config), "relations": list(config.relations)}
        del settings["threads"]  # no part of the result
        provenance = {
            "store": graph_fingerprint(kb),
            "config": settings,
            "start": None if start is None else hash_start(start),
        }
        work = Path(os.path.realpath(folder)).with_name(f"{folder.name}.partial")
        ranking = rank_all(pagerank, work, provenance, progress=progress)
        progress.start("list edges")
        columns = list_edges(triples, graph, ranking, first_types(kb))
        progress.finish()
        with new_folder(folder, overwrite=overwrite) as work_folder:
            typed = {name: each.astype(COLUMNS[name].kinds) for name, each in columns.items()}
            save_arrays(work_folder, typed)
            content = {
                **provenance,
                "n_entities": graph.n_entities,
                "n_linked": graph.n_linked,
                "n_edges": len(columns["scores"]),
                **{name: getattr(ranking, name) for name in _COUNTS},
                "files": describe_files(work_folder),
            }
            manifest = NEIGHBOURS.write(work_folder, content)
        shutil.rmtree(work, ignore_errors=True)
    return manifest


def hash_start(start: Floats) -> str:
    """Hash a start vector by its values.

    Args:
        start: The vector, by row.
    """
    numbers = np.ascontiguousarray(start, "<f8") + 0.0  # so that -0 and 0 are one
    return hashlib.sha256(numbers.tobytes()).hexdigest()


def first_types(kb: KnowledgeBase) -> Int32s:
    """Return the index of each concept's first type, -1 for a concept without.

    Args:
        kb: The knowledge base.
    """
    types = np.full(len(kb), -1, np.int32)
    table = kb.table("types")
    concepts, kinds = (table.column(name).to_numpy()[::-1] for name in ("concept", "type"))
    types[concepts] = kinds  # reversed, so that the first type is written last
    return types


def list_edges(
    triples: Triples, graph: Adjacency, ranking: Ranked, types: Int32s
) -> dict[str, Array]:
    """List the edges to the ranked neighbours, by entity, rank, relation and direction.

    Args:
        triples: The triples that join entities.
        graph: Their adjacency.
        ranking: The best neighbours by position.
        types: The first type of each entity.

    Returns:
        The columns of the table.
    """
    # each edge once from either end, ordered by owner, neighbour, relation and direction
    linked = triples.where(triples.heads != triples.tails)
    heads, tails = linked.heads.astype(np.int64), linked.tails.astype(np.int64)
    n, n_kinds = max(graph.n_entities, 1), 2 * max(len(triples.relation_names), 1)
    out, back = (heads * n + tails) * n_kinds, (tails * n + heads) * n_kinds
    out += linked.relations * 2
    back += linked.relations * 2 + 1
    edges = np.sort(np.concatenate((out, back)))
    keys, kinds = np.divmod(edges[np.diff(edges, prepend=-1) > 0], n_kinds)
    positions, ranks = np.nonzero(ranking.positions >= 0)
    rows = graph.row_of[positions].astype(np.int64)
    order = np.lexsort((ranks, rows))
    positions, ranks, rows = positions[order], ranks[order], rows[order]
    best = rows * n + graph.row_of[ranking.positions[positions, ranks]]
    first = np.searchsorted(keys, best, side="left")
    counts = np.searchsorted(keys, best, side="right") - first
    ends = np.cumsum(counts)
    indices = np.repeat(first - ends + counts, counts) + np.arange(counts.sum())
    per_row = np.bincount(rows, weights=counts, minlength=graph.n_entities).astype(np.int64)
    return {
        "ends": np.concatenate(([0], np.cumsum(per_row))),
        "neighbours": keys[indices] % n,
        "relations": kinds[indices] // 2,
        "directions": kinds[indices] % 2,
        "types": types[keys[indices] % n],
        "scores": np.repeat(ranking.scores[positions, ranks], counts),
    }
