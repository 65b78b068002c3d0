"""Rank the neighbours of all entities: long work, in blocks, taken up again where it stopped.

What is found is written into a folder of work as it comes. A later call with the same graph and
configuration goes on from there; any other starts afresh.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import biograft
from biograft.errors import OutputError
from biograft.graph.adjacency import Floats, Ints
from biograft.graph.pepr import PageRank, Ranked
from biograft.manifests import peek
from biograft.progress import Progress
from biograft.runs import new_file

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
