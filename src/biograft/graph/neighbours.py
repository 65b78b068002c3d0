"""Build the table of neighbours: rank the neighbours of all entities in resumable blocks.

Results are written to a working folder as they come. A later call with the same graph and
configuration resumes there; any other call starts anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import biograft
from biograft.arrays import check_length, check_range, create_array, open_array, save_array
from biograft.artifacts import describe_files, new_file, new_folder, peek, sole_writer
from biograft.errors import ConfigError, OutputError, nearest
from biograft.graph.adjacency import Adjacency, Floats, Ints, build_adjacency
from biograft.graph.config import PeprConfig
from biograft.graph.embedding.parallel import n_threads
from biograft.graph.neighbour_table import COLUMNS, NEIGHBOURS
from biograft.graph.pepr import PageRank, Ranked
from biograft.graph.triples import Triples, graph_fingerprint, read_triples
from biograft.progress import Progress

if TYPE_CHECKING:
    from biograft.kb import KnowledgeBase

BLOCK = 4096
"""Entities after which results are flushed to disk."""
_CHUNK = 32
"""Entities that a thread ranks at a time."""
_STATE = "state.json"
_FILES = {_STATE, "positions.npy", "scores.npy"}
_COUNTS = ("n_certified", "n_refined", "n_uncertain")


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best neighbours of all linked entities, by position, and counts of certain rankings."""

    positions: Ints  # (n_linked, k)
    scores: Floats
    counts: dict[str, int]


def rank_all(
    pagerank: PageRank,
    work: Path,
    provenance: dict[str, Any],
    *,
    progress: Progress | None = None,
) -> Ranking:
    """Rank the neighbours of every linked entity."""
    progress = progress or Progress(enabled=False)
    shape = pagerank.graph.n_linked, pagerank.config.k
    provenance = {**provenance, "shape": list(shape), "made_by": biograft.__version__}
    positions, scores, state = _resume(work, provenance, shape)
    n = pagerank.graph.n_linked
    if n and state["n_done"] < n:
        progress.start("solve pilots")
        pagerank.prepare()
    progress.start("rank neighbours", state["n_done"] / max(n, 1))
    with ThreadPoolExecutor(pagerank.config.threads or n_threads()) as pool:
        for start in range(state["n_done"], n, BLOCK):
            stop = min(start + BLOCK, n)
            done = start
            for ranked in pool.map(pagerank.rank, _chunks(start, stop)):
                _store(ranked, positions, scores, done)
                done += len(ranked.positions)
                for name in _COUNTS:
                    state[name] += getattr(ranked, name)
                progress.advance(len(ranked.positions), done / n)
            positions.flush()
            scores.flush()
            state["n_done"] = stop
            _write_state(work, provenance, state)
    progress.finish()
    counts = {name: state[name] for name in _COUNTS}
    return Ranking(np.asarray(positions), np.asarray(scores), counts)


def _chunks(start: int, stop: int) -> Iterator[Ints]:
    for first in range(start, stop, _CHUNK):
        yield np.arange(first, min(first + _CHUNK, stop), dtype=np.int32)


def _store(ranked: Ranked, positions: Ints, scores: Floats, indices: int) -> None:
    positions[indices : indices + len(ranked.positions)] = ranked.positions
    scores[indices : indices + len(ranked.positions)] = ranked.scores


def _resume(work: Path, provenance: dict[str, Any], shape: tuple[int, int]) -> tuple[Any, Any, Any]:
    """Resume the results of an interrupted call, or start anew."""
    state = peek(work / _STATE)
    paths = work / "positions.npy", work / "scores.npy"
    with contextlib.suppress(ValueError):
        if state.get("provenance") == provenance:
            return *_open_results(paths, shape), state
    _clear(work)
    work.mkdir(parents=True)
    if not shape[0]:
        zeros: npt.NDArray[Any] = np.zeros(shape)
        return zeros.astype(np.int32), zeros, _new_state()
    created = [
        create_array(path, dtype, shape)
        for path, dtype in zip(paths, (np.int32, np.float64), strict=True)
    ]
    return created[0], created[1], _new_state()


def _open_results(paths: tuple[Path, Path], shape: tuple[int, int]) -> tuple[Any, Any]:
    """Open the results so far for writing; ``ValueError`` if they are damaged."""
    positions = open_array(paths[0], np.int32, n_axes=2, mode="r+")
    scores = open_array(paths[1], np.float64, n_axes=2, mode="r+")
    for name, column in (("positions", positions), ("scores", scores)):
        check_length(name, column, *shape)
    check_range("positions", positions, -1, shape[0] - 1)
    return positions, scores


def _clear(work: Path) -> None:
    """Remove the results of other work; refuse to remove other files."""
    if not work.exists():
        return
    names = {path.name for path in work.iterdir()} if work.is_dir() else {work.name}
    foreign = [name for name in names - _FILES if not name.startswith(f".{_STATE}.")]
    if foreign:
        raise OutputError(
            f"{work}: unfinished work is kept there, and it holds {min(foreign)}, which is none; "
            "move that away, or choose another folder"
        )
    shutil.rmtree(work)


def _new_state() -> dict[str, Any]:
    return {"n_done": 0, **dict.fromkeys(_COUNTS, 0)}


def _write_state(work: Path, provenance: dict[str, Any], state: dict[str, Any]) -> None:
    with new_file(work / _STATE, overwrite=True) as file:
        file.write(json.dumps({**state, "provenance": provenance}).encode())


Columns = dict[str, npt.NDArray[Any]]


def build_neighbours(
    kb: KnowledgeBase,
    folder: Path,
    config: PeprConfig | None = None,
    *,
    start: Floats | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Write the table of neighbours of every entity; return its manifest.

    ``start`` is the start vector of ``config.rounds`` rounds, by row. An interrupted call resumes
    when it is repeated.
    """
    config, progress = config or PeprConfig(), progress or Progress(enabled=False)
    with sole_writer(folder):
        _check_folder(folder, overwrite=overwrite)
        return _build(kb, folder, config, start, overwrite=overwrite, progress=progress)


def _build(
    kb: KnowledgeBase,
    folder: Path,
    config: PeprConfig,
    start: Floats | None,
    *,
    overwrite: bool,
    progress: Progress,
) -> dict[str, Any]:
    triples = _choose_relations(read_triples(kb).of_split("train"), config.relations)
    progress.start("join neighbours")
    graph = build_adjacency(triples.heads, triples.tails, len(kb))
    pagerank = PageRank(graph, config, start=start)
    provenance = _provenance(kb, config, start)
    work = Path(os.path.realpath(folder)).with_name(f"{folder.name}.partial")
    ranking = rank_all(pagerank, work, provenance, progress=progress)
    progress.start("list edges")
    columns = list_edges(triples, graph, ranking, first_types(kb))
    progress.finish()
    with new_folder(folder, overwrite=overwrite) as work_folder:
        for name, column in columns.items():
            save_array(work_folder / f"{name}.npy", column.astype(COLUMNS[name]))
        manifest = NEIGHBOURS.write(
            work_folder,
            {
                **provenance,
                "n_entities": graph.n_entities,
                "n_linked": graph.n_linked,
                "n_edges": len(columns["scores"]),
                **ranking.counts,
                "files": describe_files(work_folder),
            },
        )
    shutil.rmtree(work, ignore_errors=True)
    return manifest


def _check_folder(folder: Path, *, overwrite: bool) -> None:
    """Refuse an existing folder before the work, not after it."""
    if folder.exists() and not overwrite and not (folder.is_dir() and not any(folder.iterdir())):
        raise OutputError(
            f"{folder}: exists already; remove it, choose another folder, or allow it to be "
            "replaced (--overwrite)"
        )


def _provenance(kb: KnowledgeBase, config: PeprConfig, start: Floats | None) -> dict[str, Any]:
    """Return what determines the result: store, configuration and start vector."""
    settings = asdict(config)
    del settings["threads"]  # no part of the result
    return {
        "store": graph_fingerprint(kb),
        "config": {**settings, "relations": list(config.relations)},
        "start": None if start is None else hash_start(start),
    }


def hash_start(start: Floats) -> str:
    """Hash a start vector by its values."""
    numbers = np.ascontiguousarray(start, "<f8") + 0.0  # so that -0 and 0 are one
    return hashlib.sha256(numbers.tobytes()).hexdigest()


def _choose_relations(triples: Triples, names: Sequence[str]) -> Triples:
    if not names:
        return triples
    for name in names:
        if name not in triples.relation_names:
            raise ConfigError(
                f"--relations: the store has no relation {name!r}; "
                f"{nearest(name, triples.relation_names)}"
            )
    selected = [triples.relation_names.index(name) for name in names]
    return triples.where(np.isin(triples.relations, selected))


def first_types(kb: KnowledgeBase) -> npt.NDArray[np.int32]:
    """Return the index of each concept's first type, -1 for a concept without."""
    types = np.full(len(kb), -1, np.int32)
    table = kb.table("types")
    concepts = table.column("concept").to_numpy()[::-1]
    types[concepts] = table.column("type").to_numpy()[
        ::-1
    ]  # reversed, so that the first type is written last
    return types


def list_edges(
    triples: Triples, graph: Adjacency, ranking: Ranking, types: npt.NDArray[np.int32]
) -> Columns:
    """List the edges to the ranked neighbours, by entity, rank, relation and direction."""
    owners, neighbours, relations, directions = _both_ways(triples)
    n = max(graph.n_entities, 1)
    keys = owners * n + neighbours
    positions, ranks = np.nonzero(ranking.positions >= 0)
    rows = graph.row_of[positions].astype(np.int64)
    order = np.lexsort((ranks, rows))
    positions, ranks, rows = positions[order], ranks[order], rows[order]
    best_rows = graph.row_of[ranking.positions[positions, ranks]].astype(np.int64)
    first = np.searchsorted(keys, rows * n + best_rows, side="left")
    counts = np.searchsorted(keys, rows * n + best_rows, side="right") - first
    ends = np.cumsum(counts)
    indices = np.repeat(first - ends + counts, counts) + np.arange(counts.sum())
    per_row = np.bincount(rows, weights=counts, minlength=graph.n_entities).astype(np.int64)
    return {
        "ends": np.concatenate(([0], np.cumsum(per_row))),
        "neighbours": neighbours[indices],
        "relations": relations[indices],
        "directions": directions[indices],
        "types": types[neighbours[indices]],
        "scores": np.repeat(ranking.scores[positions, ranks], counts),
    }


def _both_ways(triples: Triples) -> tuple[npt.NDArray[np.int64], ...]:
    """Return each edge once from either end: owner, neighbour, relation, direction; sorted."""
    heads, tails = triples.heads.astype(np.int64), triples.tails.astype(np.int64)
    no_loop = heads != tails
    heads, tails, relations = heads[no_loop], tails[no_loop], triples.relations[no_loop]
    owners, neighbours = np.concatenate((heads, tails)), np.concatenate((tails, heads))
    kinds = np.concatenate((relations * 2, relations * 2 + 1)).astype(np.int64)  # in after out
    order = np.lexsort((kinds, neighbours, owners))
    owners, neighbours, kinds = owners[order], neighbours[order], kinds[order]
    first = np.ones(len(owners), np.bool_)
    first[1:] = (np.diff(owners) != 0) | (np.diff(neighbours) != 0) | (np.diff(kinds) != 0)
    owners, neighbours, kinds = owners[first], neighbours[first], kinds[first]
    return owners, neighbours, kinds // 2, kinds % 2
