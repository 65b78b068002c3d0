"""Rank the neighbours of all entities: long work, in blocks, taken up again where it stopped.

What is found is written into a folder of work as it comes. A later call with the same graph and
configuration goes on from there; any other starts afresh.
"""

from __future__ import annotations

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
from biograft.artifacts import file_sizes, new_file, new_folder, peek, sole_writer
from biograft.errors import ConfigError, OutputError, nearest
from biograft.graph.adjacency import Adjacency, Floats, Ints, build_adjacency
from biograft.graph.neighbour_table import COLUMNS, NEIGHBOURS
from biograft.graph.pepr import PageRank, PeprConfig, Ranked
from biograft.graph.triples import Triples, graph_fingerprint, read_triples
from biograft.progress import Progress

if TYPE_CHECKING:
    from biograft.kb import KnowledgeBase

BLOCK = 4096
"""Entities after which the work is safe on disk."""
_AT_ONCE = 32
"""Entities a thread takes at a time."""
_STATE = "state.json"
_FILES = {_STATE, "places.npy", "scores.npy"}
_COUNTS = ("n_certified", "n_refined", "n_unsure")


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best neighbours of all linked entities, by place, and how they were found."""

    places: Ints  # (n_linked, k)
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
    places, scores, state = _take_up(work, provenance, shape)
    n = pagerank.graph.n_linked
    if n and state["n_done"] < n:
        progress.start("solve pilots")
        pagerank.prepare()
    progress.start("rank neighbours", state["n_done"] / max(n, 1))
    with ThreadPoolExecutor(pagerank.config.threads or _cores()) as pool:
        for start in range(state["n_done"], n, BLOCK):
            stop = min(start + BLOCK, n)
            done = start
            for ranked in pool.map(pagerank.rank, _pieces(start, stop)):
                _keep(ranked, places, scores, done)
                done += len(ranked.places)
                for name in _COUNTS:
                    state[name] += getattr(ranked, name)
                progress.advance(len(ranked.places), done / n)
            places.flush()
            scores.flush()
            state["n_done"] = stop
            _write_state(work, provenance, state)
    progress.finish()
    counts = {name: state[name] for name in _COUNTS}
    return Ranking(np.asarray(places), np.asarray(scores), counts)


def _pieces(start: int, stop: int) -> Iterator[Ints]:
    for first in range(start, stop, _AT_ONCE):
        yield np.arange(first, min(first + _AT_ONCE, stop), dtype=np.int32)


def _keep(ranked: Ranked, places: Ints, scores: Floats, at: int) -> None:
    places[at : at + len(ranked.places)] = ranked.places
    scores[at : at + len(ranked.places)] = ranked.scores


def _take_up(
    work: Path, provenance: dict[str, Any], shape: tuple[int, int]
) -> tuple[Any, Any, Any]:
    """Open what an interrupted call has left, or begin afresh."""
    state = peek(work / _STATE)
    paths = work / "places.npy", work / "scores.npy"
    if state.get("provenance") == provenance and all(path.is_file() for path in paths):
        opened = [np.lib.format.open_memmap(path, mode="r+") for path in paths]
        if all(column.shape == shape for column in opened):
            return opened[0], opened[1], state
    _clear(work)
    work.mkdir(parents=True)
    if not shape[0]:
        nothing: npt.NDArray[Any] = np.zeros(shape)
        return nothing.astype(np.int32), nothing, _fresh()
    made = [
        np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)
        for path, dtype in zip(paths, (np.int32, np.float64), strict=True)
    ]
    return made[0], made[1], _fresh()


def _clear(work: Path) -> None:
    """Remove what is left of other work; what is not ours is not touched."""
    if not work.exists():
        return
    names = {path.name for path in work.iterdir()} if work.is_dir() else {work.name}
    foreign = [name for name in names - _FILES if not name.startswith(f".{_STATE}.")]
    if foreign:
        raise OutputError(
            f"{work}: unfinished work is kept there, and it holds {min(foreign)}, which is none; "
            "move that away, or choose another place"
        )
    shutil.rmtree(work)


def _fresh() -> dict[str, Any]:
    return {"n_done": 0, **dict.fromkeys(_COUNTS, 0)}


def _write_state(work: Path, provenance: dict[str, Any], state: dict[str, Any]) -> None:
    with new_file(work / _STATE, overwrite=True) as file:
        file.write(json.dumps({**state, "provenance": provenance}).encode())


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


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
    """Write the table of neighbours of every entity; give its manifest.

    ``start`` is the vector that few rounds begin with, by row.
    An interrupted call goes on where it was when it is made again.
    """
    config, progress = config or PeprConfig(), progress or Progress(enabled=False)
    with sole_writer(folder):
        _check_place(folder, overwrite=overwrite)
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
    triples = _choose_relations(read_triples(kb), config.relations)
    progress.start("join neighbours")
    graph = build_adjacency(triples.heads, triples.tails, len(kb))
    pagerank = PageRank(graph, config, start=start)
    provenance = _tell_origin(kb, config, start)
    work = Path(os.path.realpath(folder)).with_name(f"{folder.name}.partial")
    ranking = rank_all(pagerank, work, provenance, progress=progress)
    progress.start("list edges")
    columns = list_edges(triples, graph, ranking, first_types(kb))
    progress.finish()
    with new_folder(folder, overwrite=overwrite) as place:
        for name, column in columns.items():
            np.save(place / f"{name}.npy", column.astype(COLUMNS[name]))
        manifest = NEIGHBOURS.write(
            place,
            {
                **provenance,
                "n_entities": graph.n_entities,
                "n_linked": graph.n_linked,
                "n_edges": len(columns["scores"]),
                **ranking.counts,
                "files": file_sizes(place),
            },
        )
    shutil.rmtree(work, ignore_errors=True)
    return manifest


def _check_place(folder: Path, *, overwrite: bool) -> None:
    """Refuse a place that is taken before the work, not after it."""
    if folder.exists() and not overwrite and not (folder.is_dir() and not any(folder.iterdir())):
        raise OutputError(
            f"{folder}: exists already; remove it, choose another place, or allow it to be "
            "replaced (--overwrite)"
        )


def _tell_origin(kb: KnowledgeBase, config: PeprConfig, start: Floats | None) -> dict[str, Any]:
    """Say what decides the result."""
    settings = asdict(config)
    del settings["threads"]  # no part of the result
    return {
        "store": graph_fingerprint(kb),
        "config": {**settings, "relations": list(config.relations)},
        "start": None if start is None else hash_start(start),
    }


def hash_start(start: Floats) -> str:
    """Hash a start vector, number by number: equal vectors alone have equal hashes."""
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
    wanted = [triples.relation_names.index(name) for name in names]
    return triples.where(np.isin(triples.relations, wanted))


def first_types(kb: KnowledgeBase) -> npt.NDArray[np.int32]:
    """Give the number of each concept's first type, -1 for one without."""
    found = np.full(len(kb), -1, np.int32)
    table = kb.table("types")
    concepts = table.column("concept").to_numpy()[::-1]
    found[concepts] = table.column("type").to_numpy()[::-1]  # written last, the first one stays
    return found


def list_edges(
    triples: Triples, graph: Adjacency, ranking: Ranking, types: npt.NDArray[np.int32]
) -> Columns:
    """List the edges to the ranked neighbours, by entity, rank, relation and direction."""
    owners, neighbours, relations, directions = _both_ways(triples)
    n = max(graph.n_entities, 1)
    keys = owners * n + neighbours
    places, ranks = np.nonzero(ranking.places >= 0)
    rows = graph.row_at[places].astype(np.int64)
    order = np.lexsort((ranks, rows))
    places, ranks, rows = places[order], ranks[order], rows[order]
    chosen = graph.row_at[ranking.places[places, ranks]].astype(np.int64)
    first = np.searchsorted(keys, rows * n + chosen, side="left")
    counts = np.searchsorted(keys, rows * n + chosen, side="right") - first
    ends = np.cumsum(counts)
    at = np.repeat(first - ends + counts, counts) + np.arange(counts.sum())
    per_row = np.bincount(rows, weights=counts, minlength=graph.n_entities).astype(np.int64)
    return {
        "ends": np.concatenate(([0], np.cumsum(per_row))),
        "neighbours": neighbours[at],
        "relations": relations[at],
        "directions": directions[at],
        "types": types[neighbours[at]],
        "scores": np.repeat(ranking.scores[places, ranks], counts),
    }


def _both_ways(triples: Triples) -> tuple[npt.NDArray[np.int64], ...]:
    """Give each edge once from either end: owner, neighbour, relation, direction; sorted."""
    heads, tails = triples.heads.astype(np.int64), triples.tails.astype(np.int64)
    apart = heads != tails
    heads, tails, relations = heads[apart], tails[apart], triples.relations[apart]
    owners, neighbours = np.concatenate((heads, tails)), np.concatenate((tails, heads))
    kinds = np.concatenate((relations * 2, relations * 2 + 1)).astype(np.int64)  # in after out
    order = np.lexsort((kinds, neighbours, owners))
    owners, neighbours, kinds = owners[order], neighbours[order], kinds[order]
    fresh = np.ones(len(owners), np.bool_)
    fresh[1:] = (np.diff(owners) != 0) | (np.diff(neighbours) != 0) | (np.diff(kinds) != 0)
    owners, neighbours, kinds = owners[fresh], neighbours[fresh], kinds[fresh]
    return owners, neighbours, kinds // 2, kinds % 2
