"""Concepts of a build: rows by id, and filters by semantic type."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from biograft.errors import ConfigError, nearest
from biograft.kb.collector import CollectedRecords
from biograft.kb.id_rows import IdRows
from biograft.kb.records import IdKind
from biograft.kb.tables import ID_KINDS
from biograft.kb.vocabularies import canonical_id

DROPPED = np.uint32(0xFFFFFFFF)
"""The row of a concept that a filter left out."""


UNMERGED = {"first": pl.String, "second": pl.String, "reason": pl.String}


@dataclass
class Concepts:
    """All concepts, and the mapping from source ids to them."""

    by_id: pl.DataFrame
    """Columns ``concept`` (id as in the sources), ``key`` (canonical spelling) and ``row``."""
    ids: pl.Series
    """The primary id of every row."""
    n_merged: int = 0
    n_ambiguous: int = 0
    """Number of links between concepts that were not one to one."""
    unmerged: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=UNMERGED))
    """Links that were not used to merge, with the reason."""
    n_dropped: int = 0
    alternates: pl.DataFrame | None = None
    """Columns ``key`` and ``row`` of the unambiguous alternate ids."""

    def __post_init__(self) -> None:
        lookup = self.by_id.select("key", "row")
        if len(self.ids) < self.by_id.height:
            lookup = lookup.unique("key", keep="first", maintain_order=True)
        self._rows = IdRows(lookup)

    def rows_of(self, column: pl.Series) -> pl.Series:
        """Return the row of every id in a column; null for unknown ids.

        Primary ids are looked up before alternate ids.
        """
        keys = canonical_ids(column).alias("key")
        rows = self._rows.find(keys)
        if self.alternates is None or not rows.null_count():
            return rows
        others = keys.to_frame().join(self.alternates, on="key", how="left", maintain_order="left")[
            "row"
        ]
        return pl.select(pl.coalesce(rows, others).alias("row")).to_series()

    def merged_ids(self) -> pl.DataFrame:
        """Return the ids that were merged into other concepts: ``concept`` (row) and ``id``."""
        valid = self.by_id.filter(pl.col("row") != int(DROPPED))
        primary = self.ids.gather(valid["row"])
        return valid.filter(valid["concept"] != primary).select(concept="row", id="concept")


def number_concepts(records: CollectedRecords) -> Concepts:
    """Number concepts by first appearance; a concept exists if a source declares or names it.

    Ids that differ in the spelling of their prefix alone are one concept.
    """
    parts = []
    for table in ("concepts", "names"):
        for frame in records.frames(table):
            ids = frame["concept"]
            first = (ids != ids.shift()).fill_null(True)
            parts.append(frame.select("concept", "file").filter(first))
    if not parts:
        empty = pl.Series("concept", [], dtype=pl.String)
        by_id = pl.DataFrame({"concept": empty, "key": empty, "row": empty.cast(pl.UInt32)})
        return Concepts(by_id, empty)
    parts.sort(key=lambda frame: int(frame["file"][0]))
    ids = pl.concat(parts)["concept"].unique(maintain_order=True).rechunk()
    keys = canonical_ids(ids)
    first = keys.is_first_distinct()
    if first.all():
        rows = pl.Series("row", np.arange(len(ids), dtype=np.uint32))
        return Concepts(pl.DataFrame({"concept": ids, "key": keys, "row": rows}), ids)
    order = pl.DataFrame({"key": keys.filter(first)}).with_row_index("row")
    by_id = pl.DataFrame({"concept": ids, "key": keys})
    by_id = by_id.join(order, on="key", how="left", maintain_order="left")
    return Concepts(by_id, ids.filter(first), n_merged=len(ids) - len(order))


def add_alternates(concepts: Concepts, records: CollectedRecords) -> Concepts:
    """Add the alternate ids that lead to exactly one concept to the lookup."""
    alternate = ID_KINDS.index(IdKind.ALTERNATE)
    frames = [
        pl.DataFrame(
            {"key": canonical_ids(selected["id"]), "row": concepts.rows_of(selected["concept"])}
        )
        for frame in records.frames("ids")
        if (selected := frame.filter(frame["kind"] == alternate)).height
    ]
    if frames:
        pairs = pl.concat(frames).drop_nulls().unique(maintain_order=True)
        unambiguous = pairs.filter(pl.col("row").n_unique().over("key") == 1)
        concepts.alternates = unambiguous
    return concepts


def renumber(concepts: Concepts, leaders: npt.NDArray[np.uint32]) -> Concepts:
    """Map every row to that of its leader (``DROPPED``: none), and number rows without gaps."""
    is_leader = leaders == np.arange(len(leaders), dtype=np.uint32)
    new = np.where(is_leader, np.cumsum(is_leader) - 1, 0).astype(np.uint32)
    valid = leaders != DROPPED
    rows = np.full(len(leaders), DROPPED, np.uint32)
    rows[valid] = new[leaders[valid]]
    old = concepts.by_id["row"].to_numpy()
    by_id = concepts.by_id.with_columns(
        row=np.where(old == DROPPED, DROPPED, rows[np.minimum(old, len(rows) - 1)])
    )
    return replace(concepts, by_id=by_id, ids=concepts.ids.filter(pl.Series(is_leader)))


def canonical_ids(ids: pl.Series) -> pl.Series:
    """Convert a column of ids to their canonical spelling."""
    prefixed = ids.str.contains(":", literal=True)
    if not prefixed.any():
        return ids
    distinct = ids.filter(prefixed).unique()
    return ids.replace(distinct, pl.Series([canonical_id(i) for i in distinct], dtype=pl.String))


def filter_types(concepts: Concepts, records: CollectedRecords, types: tuple[str, ...]) -> Concepts:
    """Keep the concepts of some semantic types and of all types below them."""
    codes = records.vocabularies["type"].labels
    labels = {code: records.labels.get(code, ("", "")) for code in codes}
    closed = close_types({code: tree for code, (_, tree) in labels.items()}, _codes(labels, types))
    indices = [index for index, code in enumerate(codes) if code in closed]
    n = len(concepts.ids)
    keep = np.zeros(n, bool)
    for frame in records.frames("types"):
        selected = frame.filter(frame["type"].is_in(indices))
        rows = concepts.rows_of(selected["concept"])
        keep[rows.drop_nulls().to_numpy()] = True
    leaders = np.where(keep, np.arange(n, dtype=np.uint32), DROPPED)
    filtered = renumber(concepts, leaders.astype(np.uint32))
    filtered.n_dropped = n - len(filtered.ids)
    return filtered


def _codes(labels: dict[str, tuple[str, str]], types: tuple[str, ...]) -> tuple[str, ...]:
    """Return the codes of types given by code, label or category letter."""
    by_label = {label.lower(): code for code, (label, _) in labels.items() if label}
    known = {*labels, *by_label, *(tree for _, tree in labels.values() if tree)}
    categories = {tree[0] for _, tree in labels.values() if tree}
    for word in types:
        if word not in known and word.lower() not in by_label and word not in categories:
            hint = nearest(word, known) if known else "the sources give no types at all"
            raise ConfigError(f"types: no concept has the type {word!r}; {hint}")
    return tuple(by_label.get(word.lower(), word) for word in types)


def close_types(trees: dict[str, str], types: tuple[str, ...]) -> set[str]:
    """Return the given types and all types below them.

    A type is below another if its tree number extends the other's (``B2.2.1`` and ``B2.2``); a
    single letter stands for a whole category, as in MeSH.
    """
    roots = [trees.get(code) or code for code in types]
    return set(types) | {
        code for code, tree in trees.items() if any(_is_below(tree or code, root) for root in roots)
    }


def _is_below(tree: str, root: str) -> bool:
    in_category = len(root) == 1 and tree[:1] == root and tree[1:2].isdigit()
    return tree == root or tree.startswith(root + ".") or in_category
