"""Table of the best neighbours of every entity of a store, memory-mapped and read by row.

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
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from biograft.arrays import check_ends, check_length, check_range, open_array
from biograft.artifacts import ArtifactKind
from biograft.errors import ConfigError, NotFoundError, StoreError
from biograft.graph.triples import graph_fingerprint

if TYPE_CHECKING:
    from biograft.kb import KnowledgeBase

NEIGHBOURS = ArtifactKind(
    format="biograft-neighbours",
    version=1,
    called="table of neighbours",
    remedy="make it again with `biograft graph neighbours`",
    keys=("store", "config", "files"),
)
COLUMNS: dict[str, type[np.generic]] = {
    "ends": np.int64,
    "neighbours": np.int32,
    "relations": np.uint16,
    "directions": np.uint8,
    "types": np.int32,
    "scores": np.float32,
}
DIRECTIONS = ("out", "in")


@dataclass(frozen=True, slots=True)
class Edges:
    """Edges to neighbours as parallel arrays; a block is padded with -1 (scores with 0)."""

    neighbours: npt.NDArray[np.int32]
    relations: npt.NDArray[np.int32]
    directions: npt.NDArray[np.int32]
    types: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.neighbours)


class NeighbourTable:
    """The best neighbours of all entities of one store, opened for reading."""

    def __init__(self, folder: Path, manifest: dict[str, Any], kb: KnowledgeBase) -> None:
        self.folder, self.manifest = folder, manifest
        try:
            self.k = _read_k(manifest["config"])
            self._columns = {
                name: open_array(folder / f"{name}.npy", kind) for name, kind in COLUMNS.items()
            }
            _check_columns(self._columns, kb)
        except ValueError as error:
            raise NEIGHBOURS.damaged(folder, error) from error

    @classmethod
    def open(cls, folder: str | Path, kb: KnowledgeBase) -> NeighbourTable:
        """Open the table in a folder; refuse one made from another store."""
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

    def gather(self, rows: npt.ArrayLike, width: int | None = None) -> Edges:
        """Return the first ``width`` edges (default: k) of many entities as a padded block.

        A row of -1 has no edges.
        """
        rows = np.asarray(rows, np.int64)
        if rows.size and not (rows.min() >= -1 and rows.max() < len(self)):
            raise NotFoundError(f"rows: expected -1 to {len(self) - 1}")
        width = self.k if width is None else width
        if width < 0:
            raise ConfigError(f"width: expected 0 or more, found {width}")
        ends = self._columns["ends"]
        valid = rows >= 0
        starts = np.where(valid, ends[rows], 0)
        counts = np.where(valid, ends[rows + 1] - starts, 0)
        slots = np.arange(width)
        mask = slots < counts[..., None]  # (*rows, width)
        if not len(self._columns["scores"]):
            return self._empty(mask.shape)
        return self._edges(np.where(mask, starts[..., None] + slots, 0), mask)

    def _edges(
        self, indices: npt.NDArray[np.int64], mask: npt.NDArray[np.bool_] | None = None
    ) -> Edges:
        columns = {name: self._columns[name][indices] for name in COLUMNS if name != "ends"}
        scores = columns.pop("scores")
        integers = {name: column.astype(np.int32) for name, column in columns.items()}
        if mask is not None:
            scores = np.where(mask, scores, np.float32(0))
            integers = {name: np.where(mask, v, np.int32(-1)) for name, v in integers.items()}
        return Edges(scores=np.asarray(scores), **integers)

    def _empty(self, shape: tuple[int, ...]) -> Edges:
        integers = {
            name: np.full(shape, -1, np.int32)
            for name in ("neighbours", "relations", "directions", "types")
        }
        return Edges(scores=np.zeros(shape, np.float32), **integers)


def _read_k(config: object) -> int:
    k = config.get("k") if isinstance(config, Mapping) else None
    if not isinstance(k, int) or k < 1:
        raise ValueError(f"config.k: expected a number of at least 1, found {k!r}")
    return k


def _check_columns(columns: dict[str, npt.NDArray[Any]], kb: KnowledgeBase) -> None:
    """Refuse edges of other entities, relations or types than those of the store."""
    n_edges, largest = len(columns["scores"]), float(np.finfo(np.float32).max)
    check_length("ends", columns["ends"], len(kb) + 1)
    check_ends("ends", columns["ends"], n_edges)
    ranges = {
        "neighbours": (0, len(kb) - 1),
        "relations": (0, len(kb.relation_names) - 1),
        "directions": (0, len(DIRECTIONS) - 1),
        "types": (-1, len(kb.types) - 1),
        "scores": (-largest, largest),
    }
    for name, (low, high) in ranges.items():
        check_length(name, columns[name], n_edges)
        check_range(name, columns[name], low, high)
