"""Concepts of a build: rows by id, merging across sources, and filters by semantic type."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from biograft.errors import ConfigError, nearest
from biograft.ids import canonical_id
from biograft.kb.collector import CollectedRecords
from biograft.kb.tables import ID_KINDS
from biograft.records import IdKind

DROPPED = np.uint32(0xFFFFFFFF)
"""The row of a concept that a filter left out."""


@dataclass
class Concepts:
    """All concepts, and the mapping from source ids to them."""

    by_id: pl.DataFrame
    """Columns ``concept`` (id as in the sources), ``key`` (canonical spelling) and ``row``."""
    ids: pl.Series
    """The primary id of every row."""
    n_merged: int = 0
    n_ambiguous: int = 0
    n_dropped: int = 0
    alternates: pl.DataFrame | None = None
    """Columns ``key`` and ``row`` of the unambiguous alternate ids."""

    def __post_init__(self) -> None:
        self._lookup = self.by_id.select("key", "row")
        if len(self.ids) < self.by_id.height:
            self._lookup = self._lookup.unique("key", keep="first", maintain_order=True)

    def rows_of(self, column: pl.Series) -> pl.Series:
        """Return the row of every id in a column; null for unknown ids.

        Sources repeat an id on neighbouring lines, so only the first of each run is looked up.
        Primary ids are looked up before alternate ids.
        """
        first = (column != column.shift()).fill_null(True)
        heads = canonical_ids(column.filter(first)).alias("key").to_frame()
        joined = heads.join(self._lookup, on="key", how="left", maintain_order="left")
        if self.alternates is not None and joined["row"].null_count():
            joined = joined.join(
                self.alternates, on="key", how="left", maintain_order="left", suffix="_alternate"
            ).with_columns(pl.coalesce("row", "row_alternate"))
        rows = joined["row"]
        return rows if len(rows) == len(column) else rows.gather(first.cum_sum() - 1)

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


def merge_concepts(concepts: Concepts, records: CollectedRecords, by: str) -> Concepts:
    """Merge concepts of different sources that share ids (``ids``) or cross-references (``xrefs``).

    Concepts of one source are never merged: links that are not one to one between their two
    sources, and groups with two concepts of one source, are counted as ambiguous and not used.
    """
    if not len(concepts.ids):
        return concepts
    links = _links(concepts, records, by)
    certain = _one_to_one(links)
    n_ambiguous = links.height - certain.height
    n = len(concepts.ids)
    leaders = _components(n, certain["a"].to_numpy(), certain["b"].to_numpy())
    files = _files_of(concepts, records)
    clash = (
        files.with_columns(leader=pl.Series(leaders).gather(files["row"]))
        .group_by("leader", "source")
        .len()
        .filter(pl.col("len") > 1)["leader"]
        .unique()
    )
    split = np.isin(leaders, clash.to_numpy())
    leaders[split] = np.arange(n, dtype=np.uint32)[split]
    merged = renumber(concepts, leaders)
    merged.n_merged += n - len(merged.ids)
    merged.n_ambiguous = n_ambiguous + len(clash)
    return merged


def _links(concepts: Concepts, records: CollectedRecords, by: str) -> pl.DataFrame:
    """Return pairs of rows to merge: ``a`` of source ``file_a``, ``b`` of source ``file_b``."""
    kinds = [ID_KINDS.index(IdKind.ALTERNATE)]
    if by == "xrefs":
        kinds.append(ID_KINDS.index(IdKind.XREF))
    primary = concepts.by_id.select("row", "key")
    additional = pl.concat(
        [
            pl.DataFrame(
                {
                    "row": concepts.rows_of(frame["concept"]),
                    "key": canonical_ids(frame["id"]),
                    "kind": frame["kind"],
                }
            )
            for frame in records.frames("ids")
        ]
        or [pl.DataFrame(schema={"row": pl.UInt32, "key": pl.String, "kind": pl.UInt8})]
    ).filter(pl.col("kind").is_in(kinds) & pl.col("row").is_not_null())
    # a shared third-party xref proves nothing; a shared alternate id does
    alternates = additional.filter(pl.col("kind") == kinds[0]).select("row", "key")
    targets = pl.concat([primary, alternates])
    pairs = additional.select("row", "key").join(targets, on="key", suffix="_b")
    files = _files_of(concepts, records).group_by("row").agg(pl.col("source").min())
    return (
        pairs.select(a=pl.min_horizontal("row", "row_b"), b=pl.max_horizontal("row", "row_b"))
        .filter(pl.col("a") != pl.col("b"))
        .unique(maintain_order=True)
        .join(files.rename({"row": "a", "source": "file_a"}), on="a", maintain_order="left")
        .join(files.rename({"row": "b", "source": "file_b"}), on="b", maintain_order="left")
    )


def _one_to_one(links: pl.DataFrame) -> pl.DataFrame:
    """Keep links whose ends have no other partner in the other's source."""
    partners = (
        pl.col("b").n_unique().over("a", "file_b") == 1,
        pl.col("a").n_unique().over("b", "file_a") == 1,
        pl.col("file_a") != pl.col("file_b"),
    )
    return links.filter(*partners)


def canonical_ids(ids: pl.Series) -> pl.Series:
    """Convert a column of ids to their canonical spelling."""
    prefixed = ids.str.contains(":", literal=True)
    if not prefixed.any():
        return ids
    distinct = ids.filter(prefixed).unique()
    return ids.replace(distinct, pl.Series([canonical_id(i) for i in distinct], dtype=pl.String))


def _files_of(concepts: Concepts, records: CollectedRecords) -> pl.DataFrame:
    """Return which sources contain which row, each pair once."""
    source_of_file = [records.logs.index(log) for log in records.logs]
    parts = []
    for table in ("concepts", "names"):
        for frame in records.frames(table):
            pairs = pl.DataFrame(
                {"row": concepts.rows_of(frame["concept"]), "source": frame["file"]}
            )
            parts.append(pairs.unique(maintain_order=True))
    return (
        pl.concat(parts)
        .with_columns(
            pl.col("source").replace_strict(
                list(range(len(source_of_file))), source_of_file, return_dtype=pl.UInt16
            )
        )
        .unique(maintain_order=True)
    )


def _components(
    n: int, a: npt.NDArray[np.uint32], b: npt.NDArray[np.uint32]
) -> npt.NDArray[np.uint32]:
    """Return the lowest node of each node's connected component (label propagation)."""
    leaders = np.arange(n, dtype=np.uint32)
    while True:
        lowest = np.minimum(leaders[a], leaders[b])
        before = leaders.copy()
        np.minimum.at(leaders, a, lowest)
        np.minimum.at(leaders, b, lowest)
        leaders = leaders[leaders]
        if np.array_equal(before, leaders):
            return leaders


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
