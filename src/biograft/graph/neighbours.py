"""Make the table of neighbours of a store: rank them, then say by which edges each is joined."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from biograft.errors import ConfigError, OutputError, nearest
from biograft.graph.adjacency import Adjacency, Floats, build_adjacency
from biograft.graph.neighbour_table import COLUMNS, NEIGHBOURS
from biograft.graph.pepr import PageRank, PeprConfig
from biograft.graph.ranking import Ranking, rank_all
from biograft.graph.triples import Triples, graph_fingerprint, read_triples
from biograft.manifests import file_sizes
from biograft.progress import Progress
from biograft.runs import new_folder, sole_writer

if TYPE_CHECKING:
    from biograft.kb import KnowledgeBase

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
