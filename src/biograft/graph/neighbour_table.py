"""The best neighbours of every entity of a store, on disk: opened at once, read by row.

A folder of plain arrays beside a manifest. The edges of row ``r`` are those from ``ends[r]`` up to
``ends[r + 1]``: the best neighbour first, and all edges that join the entity to it.

===============  ==============================================================
``ends``         int64, one more than entities
``neighbours``   int32, row of the neighbour
``relations``    uint16, number of the relation among the store's
``directions``   uint8, a place in ``DIRECTIONS``: ``out`` if the entity is the head
``types``        int32, number of the neighbour's first type in the store, -1 if it has none
``scores``       float32, the neighbour's score
===============  ==============================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from biograft.artifacts import Kind
from biograft.errors import ConfigError, NotFoundError, StoreError
from biograft.graph.triples import graph_fingerprint

if TYPE_CHECKING:
    from biograft.kb import KnowledgeBase

NEIGHBOURS = Kind(
    format="biograft-neighbours",
    version=1,
    called="table of neighbours",
    remedy="make it again with `biograft graph neighbours`",
    keys=("store", "config", "files"),
)
COLUMNS = {
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
    """Edges to neighbours, side by side; as a block, padded with -1 (scores with 0)."""

    neighbours: npt.NDArray[np.int32]
    relations: npt.NDArray[np.int32]
    directions: npt.NDArray[np.int32]
    types: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.neighbours)


class NeighbourTable:
    """The neighbours of all entities of one store, open for reading."""

    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self.folder, self.manifest = folder, manifest
        self.k: int = manifest["config"]["k"]
        self._columns = {name: _open(folder, name) for name in COLUMNS}
        ends = self._columns["ends"]
        lengths = {len(column) for name, column in self._columns.items() if name != "ends"}
        if not len(ends) or lengths != {int(ends[-1])}:
            raise NEIGHBOURS.damaged(folder, "its arrays do not fit together")

    @classmethod
    def open(cls, folder: str | Path, kb: KnowledgeBase) -> NeighbourTable:
        """Open the table in a folder; one made from another store is refused."""
        folder = Path(folder)
        manifest = NEIGHBOURS.read(folder)
        NEIGHBOURS.check_files(folder, manifest)
        if manifest["store"] != graph_fingerprint(kb):
            raise StoreError(
                f"{folder}: made from another knowledge base than {kb.folder}; {NEIGHBOURS.remedy}"
            )
        return cls(folder, manifest)

    def __len__(self) -> int:
        return len(self._columns["ends"]) - 1

    def __getitem__(self, row: int) -> Edges:
        """Give all edges of one entity, the best neighbour first."""
        if not 0 <= row < len(self):
            raise NotFoundError(f"row {row}: expected 0 to {len(self) - 1}")
        ends = self._columns["ends"]
        return self._edges(np.arange(ends[row], ends[row + 1]))

    def gather(self, rows: npt.ArrayLike, width: int | None = None) -> Edges:
        """Give the first ``width`` edges (default: k) of many entities as a padded block.

        A row of -1 has none. Of an entity whose best neighbours have more edges than that, the
        last ones are left out.
        """
        rows = np.asarray(rows, np.int64)
        if rows.size and not (rows.min() >= -1 and rows.max() < len(self)):
            raise NotFoundError(f"rows: expected -1 to {len(self) - 1}")
        width = self.k if width is None else width
        if width < 0:
            raise ConfigError(f"width: expected 0 or more, found {width}")
        ends = self._columns["ends"]
        known = rows >= 0
        starts = np.where(known, ends[rows], 0)
        counts = np.where(known, ends[rows + 1] - starts, 0)
        places = np.arange(width)
        inside = places < counts[..., None]  # (*rows, width)
        if not len(self._columns["scores"]):
            return self._nothing(inside.shape)
        return self._edges(np.where(inside, starts[..., None] + places, 0), inside)

    def _edges(
        self, at: npt.NDArray[np.int64], inside: npt.NDArray[np.bool_] | None = None
    ) -> Edges:
        taken = {name: self._columns[name][at] for name in COLUMNS if name != "ends"}
        scores = taken.pop("scores")
        numbers = {name: column.astype(np.int32) for name, column in taken.items()}
        if inside is not None:
            scores = np.where(inside, scores, np.float32(0))
            numbers = {name: np.where(inside, v, np.int32(-1)) for name, v in numbers.items()}
        return Edges(scores=np.asarray(scores), **numbers)

    def _nothing(self, shape: tuple[int, ...]) -> Edges:
        numbers = {
            name: np.full(shape, -1, np.int32)
            for name in ("neighbours", "relations", "directions", "types")
        }
        return Edges(scores=np.zeros(shape, np.float32), **numbers)


def _open(folder: Path, name: str) -> npt.NDArray[Any]:
    path = folder / f"{name}.npy"
    try:
        column: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise NEIGHBOURS.damaged(path, error) from error
    if column.dtype != COLUMNS[name] or column.ndim != 1:
        raise NEIGHBOURS.damaged(path, f"expected one column of {np.dtype(COLUMNS[name])}")
    return column
