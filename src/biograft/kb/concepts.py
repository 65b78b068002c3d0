"""Concepts of a build: rows by id, and filters by semantic type.

The row of the concept that each id of a column names, by a compiled hash table.

Ids of up to 12 bytes, as of UMLS, MeSH and most ontologies, lie in the string views of Arrow: 16
bytes that are equal for equal ids. A table of them is several times faster than a join of texts.
Longer ids, and short columns, are joined.

Ids of retired concepts, led to the concepts of the store that take their place.

Merging the concepts of several sources by ids and cross-references.
"""

from __future__ import annotations

import re
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from biograft.arrays import Flags, Uint64s, Uints
from biograft.compute import njit
from biograft.errors import ConfigError, nearest
from biograft.kb.collector import CollectedRecords, text_array
from biograft.kb.keys import hash_names
from biograft.kb.names import normalise
from biograft.kb.records import IdKind, NameKind
from biograft.kb.tables import ID_KINDS, NAME_KINDS
from biograft.kb.vocabularies import canonical_id

DROPPED = np.uint32(0xFFFFFFFF)
"""The row of a concept that a filter left out."""


UNMERGED = {"first": pl.String, "second": pl.String, "reason": pl.String, "name": pl.String}
MERGED = {"id": pl.String, "into": pl.String, "by": pl.String, "name": pl.String}


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
    """Links that were not used to merge, with the reason, and the name of those by name."""
    merged: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=MERGED))
    """Ids that were merged into others, by what, and the name that they share if by name."""
    alternates: pl.DataFrame | None = None
    """Columns ``key`` and ``row`` of the unambiguous alternate ids."""

    def __post_init__(self) -> None:
        lookup = self.by_id.select("key", "row")
        if self.alternates is not None:  # primary ids come before alternate ids
            lookup = pl.concat([lookup, self.alternates])
        if len(self.ids) < lookup.height:
            lookup = lookup.unique("key", keep="first", maintain_order=True)
        self._rows = IdRows(lookup)

    def rows_of(self, column: pl.Series) -> pl.Series:
        """Return the row of every id in a column; null for unknown ids.

        Args:
            column: The ids.
        """
        return self._rows.find(canonical_ids(column))

    def merged_ids(self) -> pl.DataFrame:
        """Return the ids that were merged into other concepts: ``concept`` (row) and ``id``."""
        valid = self.by_id.filter(pl.col("row") != int(DROPPED))
        primary = self.ids.gather(valid["row"])
        return valid.filter(valid["concept"] != primary).select(concept="row", id="concept")


def number_concepts(records: CollectedRecords) -> Concepts:
    """Number concepts by first appearance; a concept exists if a source declares or names it.

    Ids that differ in the spelling of their prefix alone are one concept.

    Args:
        records: The records of all sources.
    """
    parts = []
    for table in ("concepts", "names"):
        for frame in records.frames(table):
            ids = frame["concept"]
            first = (ids != ids.shift()).fill_null(True)
            parts.append(frame.select("concept", "file").filter(first))
    parts.sort(key=lambda frame: frame["file"].max() or 0)
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
    """Add the alternate ids that lead to exactly one concept to the lookup.

    Args:
        concepts: The concepts.
        records: The records of all sources.
    """
    alternate = ID_KINDS.index(IdKind.ALTERNATE)
    frames = (frame.filter(frame["kind"] == alternate) for frame in records.frames("ids"))
    pairs = pl.concat(
        pl.DataFrame({"key": canonical_ids(ids["id"]), "row": concepts.rows_of(ids["concept"])})
        for ids in frames
    )
    pairs = pairs.drop_nulls().unique(maintain_order=True)
    unambiguous = pairs.filter(pl.col("row").n_unique().over("key") == 1)
    return replace(concepts, alternates=unambiguous)


def renumber(concepts: Concepts, leaders: Uints) -> Concepts:
    """Map every row to that of its leader (``DROPPED``: none), and number rows without gaps.

    Args:
        concepts: The concepts.
        leaders: Row of the concept that each becomes.
    """
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
    """Convert a column of ids to their canonical spelling.

    Args:
        ids: The ids.
    """
    prefixed = ids.str.contains(":", literal=True)
    if not prefixed.any():
        return ids
    distinct = ids.filter(prefixed).unique()
    return ids.replace(distinct, pl.Series([canonical_id(i) for i in distinct], dtype=pl.String))


def filter_types(concepts: Concepts, records: CollectedRecords, types: tuple[str, ...]) -> Concepts:
    """Keep the concepts of some semantic types and of all types below them.

    Args:
        concepts: The concepts.
        records: The records of all sources.
        types: Codes, labels or categories of types.
    """
    codes = records.vocabularies["type"].labels
    labels = {code: records.labels.get(code, ("", "")) for code in codes}
    closed = close_types({code: tree for code, (_, tree) in labels.items()}, _codes(labels, types))
    indices = [index for index, code in enumerate(codes) if code in closed]
    keep = np.zeros(len(concepts.ids), bool)
    for frame in records.frames("types"):
        selected = frame.filter(frame["type"].is_in(indices))
        rows = concepts.rows_of(selected["concept"])
        keep[rows.drop_nulls().to_numpy()] = True
    return _filter(concepts, keep)


def filter_first_source(concepts: Concepts, records: CollectedRecords) -> Concepts:
    """Keep the concepts of the first source, with what others add to them.

    Args:
        concepts: The concepts.
        records: The records of all sources.
    """
    files = _files_of(concepts, records)
    keep = np.zeros(len(concepts.ids), bool)
    keep[files.filter(pl.col("source") == 0)["row"].drop_nulls().to_numpy()] = True
    return _filter(concepts, keep)


def _filter(concepts: Concepts, keep: Flags) -> Concepts:
    leaders = np.where(keep, np.arange(len(keep), dtype=np.uint32), DROPPED)
    return renumber(concepts, leaders.astype(np.uint32))


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

    Args:
        trees: Code of each type and its tree number.
        types: Codes of the types to keep.
    """
    roots = [trees.get(code) or code for code in types]
    return set(types) | {
        code for code, tree in trees.items() if any(_is_below(tree or code, root) for root in roots)
    }


def _is_below(tree: str, root: str) -> bool:
    in_category = len(root) == 1 and tree[:1] == root and tree[1:2].isdigit()
    return tree == root or tree.startswith(root + ".") or in_category


_INLINE = 12
MIN_ROWS = 1_000_000
"""Shorter columns are joined, which takes less time than to load a compiled loop."""
_THREADS = 2
_NONE = np.uint32(0xFFFFFFFE)


class IdRows:
    """Finds rows by id; ``lookup`` has the columns ``key``, each once, and ``row``."""

    def __init__(self, lookup: pl.DataFrame) -> None:
        self._lookup = lookup

    def find(self, ids: pl.Series) -> pl.Series:
        """Return the row of each id; null for those that are not there."""
        if len(ids) < MIN_ROWS:
            return self._join(ids)
        is_short = (ids.str.len_bytes() <= _INLINE).to_numpy()
        keys = _views(ids)
        rows = np.empty(len(keys), np.uint32)
        table_keys, table_rows = self._table
        edges = np.linspace(0, len(keys), _THREADS + 1).astype(np.int64)
        with ThreadPoolExecutor(_THREADS) as pool:
            list(
                pool.map(
                    lambda a, b: _find(keys[a:b], table_keys, table_rows, rows[a:b]),
                    edges[:-1],
                    edges[1:],
                )
            )
        found = pl.Series("row", rows)
        missing = rows == _NONE
        if missing.any():
            found = pl.select(pl.when(pl.Series(~missing)).then(found).alias("row")).to_series()
        if not is_short.all():
            long = np.flatnonzero(~is_short).astype(np.uint32)
            found = found.scatter(pl.Series(long), self._join(ids.gather(pl.Series(long))))
        return found

    def _join(self, ids: pl.Series) -> pl.Series:
        keys = ids.alias("key").to_frame()
        return keys.join(self._lookup, on="key", how="left", maintain_order="left")["row"]

    @cached_property
    def _table(self) -> tuple[Uint64s, Uints]:
        """Open addressing, at most half full; the short ids only."""
        short = self._lookup.filter(self._lookup["key"].str.len_bytes() <= _INLINE)
        size = 1 << max(4, (2 * short.height).bit_length())
        keys, rows = np.zeros((size, 2), np.uint64), np.full(size, _NONE, np.uint32)
        _insert(_views(short["key"]), short["row"].to_numpy(), keys, rows)
        return keys, rows


def _views(texts: pl.Series) -> Uint64s:
    """Return the 16 bytes of each string view: the text itself if it is short."""
    array = texts.rechunk().to_arrow(compat_level=pl.CompatLevel.newest())
    if not pa.types.is_string_view(array.type):
        array = array.cast(pa.string_view())
    views = np.frombuffer(array.buffers()[1], np.uint64)
    return views[2 * array.offset : 2 * (array.offset + len(array))].reshape(-1, 2)


@njit()
def _place(first: int, second: int, mask: int) -> Any:
    x = np.uint64(first) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(second)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(29)
    x *= np.uint64(0x94D049BB133111EB)
    return np.int64((x >> np.uint64(20)) & np.uint64(mask))


@njit()
def _insert(ids: Uint64s, values: Uints, keys: Uint64s, rows: Uints) -> None:
    mask = len(rows) - 1
    for i in range(len(ids)):
        at = _place(ids[i, 0], ids[i, 1], mask)
        while rows[at] != _NONE:
            at = (at + 1) & mask
        keys[at, 0], keys[at, 1], rows[at] = ids[i, 0], ids[i, 1], values[i]


@njit()
def _find(ids: Uint64s, keys: Uint64s, rows: Uints, found: Uints) -> None:
    mask = len(rows) - 1
    for i in range(len(ids)):
        first, second = ids[i, 0], ids[i, 1]
        if i and first == ids[i - 1, 0] and second == ids[i - 1, 1]:
            found[i] = found[i - 1]  # sources repeat an id on neighbouring lines
            continue
        at = _place(first, second, mask)
        while rows[at] != _NONE and (keys[at, 0] != first or keys[at, 1] != second):
            at = (at + 1) & mask
        found[i] = rows[at]


MAX_STEPS = 20
"""Most steps to a successor that is not retired itself."""


def retired_ids(records: CollectedRecords, concepts: Concepts) -> pl.DataFrame:
    """Return ``row`` of a concept, ``id`` of a retired one that it stands for, and ``kind``.

    A successor that is retired is followed to its own successors. If any step of the way is to be
    considered only, so is its end. Ids that lead to no concept are counted as filtered.

    Args:
        records: The records of all sources.
        concepts: The concepts.
    """
    named = pl.concat(records.frames("retired"))
    records.drop("retired")
    named = named.with_columns(key=canonical_ids(named["id"]), to=canonical_ids(named["concept"]))
    onward = named.select("key", "to", "kind")
    found, links = [], named.select("id", "key", "to", "kind")
    for _ in range(MAX_STEPS):
        rows = concepts.rows_of(links["to"]).alias("row")
        known = (rows.is_not_null() & (rows != int(DROPPED))).fill_null(False)
        found.append(links.with_columns(rows).filter(known))
        links = links.filter(~known).join(onward, left_on="to", right_on="key", suffix="_next")
        links = links.select("id", "key", to="to_next", kind=pl.max_horizontal("kind", "kind_next"))
        links = links.unique(["key", "to", "kind"], maintain_order=True)
        if not links.height:
            break
    ends = pl.concat(found)
    lost = named.filter(~named["key"].is_in(ends["key"].implode()))
    for file, n in lost.group_by("file", maintain_order=True).len().rows():
        records.logs[file].filter("retired id whose successor is no concept", n)
    return ends.select("row", "id", "kind").sort("kind", maintain_order=True)


MANY = "not one to one between two sources"
CHAIN = "would join two concepts of one source"
SEVERAL = "one of several references to a vocabulary"
OTHER_NAMES = "the preferred name of one is no name of the other"
SHARED = "a name of several concepts of one source"
CANDIDATES = "one of several concepts of a source with a name of the concept"
SYNONYMS = "a synonym of both, and the preferred name of neither"
OTHER_TYPES = "the types differ"
BY_NAME = (SHARED, CANDIDATES, SYNONYMS, OTHER_TYPES)
"""Reasons for which equal names do not merge."""
BY_ID, BY_XREF, NAME = "alternate id", "cross-reference", "name"


def merge_concepts(concepts: Concepts, records: CollectedRecords, by: str) -> Concepts:
    """Merge concepts of different sources that share ids, cross-references or names.

    Concepts of one source are never merged: links that are not one to one between their two
    sources, and groups with two concepts of one source, are counted as ambiguous and not used.
    Neither are cross-references that may only mean something near: one of several to the same
    vocabulary, or to a concept whose names are others; ``xrefs-all`` uses those. ``names`` merges
    by alternate ids, and then what has an equal name (:func:`_name_links`).

    Args:
        concepts: The concepts.
        records: The records of all sources.
        by: ``ids``, ``xrefs``, ``xrefs-all`` or ``names``.
    """
    if not len(concepts.ids):
        return concepts
    merged = _merge(concepts, records, _id_links(concepts, records, by))
    return _merge(merged, records, _name_links(merged, records)) if by == "names" else merged


def _id_links(concepts: Concepts, records: CollectedRecords, by: str) -> pl.DataFrame:
    """Return the links by ids, each with the ``reason`` for which it is not used, or without."""
    links = _links(concepts, records, by)
    one_to_one = (  # the ends of a link have no other partner in the other's source
        (pl.col("b").n_unique().over("a", "file_b") == 1)
        & (pl.col("a").n_unique().over("b", "file_a") == 1)
        & (pl.col("file_a") != pl.col("file_b"))
    )
    judged = links.with_columns(reason=pl.when(one_to_one).then(None).otherwise(pl.lit(MANY)))
    if by == "xrefs":
        doubtful = pl.col("reason").is_null() & pl.col("is_xref")
        judged = _compare_names(judged, concepts, records).with_columns(
            reason=pl.when(doubtful & pl.col("of_several"))
            .then(pl.lit(SEVERAL))
            .when(doubtful & pl.col("differ"))
            .then(pl.lit(OTHER_NAMES))
            .otherwise("reason")
        )
    kind = pl.when("is_xref").then(pl.lit(BY_XREF)).otherwise(pl.lit(BY_ID))
    return judged.select("a", "b", "reason", by=kind, name=pl.lit(""))


def _merge(concepts: Concepts, records: CollectedRecords, judged: pl.DataFrame) -> Concepts:
    """Merge by the links without a reason, but for chains that join concepts of one source."""
    certain = judged.filter(pl.col("reason").is_null())
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
    judged = judged.with_columns(
        reason=pl.when(pl.col("reason").is_null() & pl.Series(split).gather(judged["a"]))
        .then(pl.lit(CHAIN))
        .otherwise("reason")
    )
    leaders[split] = np.arange(n, dtype=np.uint32)[split]
    merged = renumber(concepts, leaders)
    merged.n_merged += n - len(merged.ids)
    merged.n_ambiguous += judged.filter(pl.col("reason") == MANY).height + len(clash)
    unused = judged.filter(pl.col("reason").is_not_null())
    not_merged = unused.select(
        first=concepts.ids.gather(unused["a"]),
        second=concepts.ids.gather(unused["b"]),
        reason="reason",
        name="name",
    )
    merged.unmerged = pl.concat([concepts.unmerged, not_merged])
    used = judged.filter(pl.col("reason").is_null())
    into = used.select(
        id=concepts.ids.gather(used["b"]),
        into=concepts.ids.gather(pl.Series(leaders).gather(used["b"])),
        by="by",
        name="name",
    )
    merged.merged = pl.concat([concepts.merged, into])
    return merged


def _links(concepts: Concepts, records: CollectedRecords, by: str) -> pl.DataFrame:
    """Return pairs of rows to merge: ``a`` of source ``file_a``, ``b`` of source ``file_b``."""
    kinds = [ID_KINDS.index(IdKind.ALTERNATE)]
    if by in ("xrefs", "xrefs-all"):
        kinds.append(ID_KINDS.index(IdKind.XREF))
    primary = concepts.by_id.select("row", "key")
    additional = pl.concat(
        pl.DataFrame(
            {
                "row": concepts.rows_of(frame["concept"]),
                "key": canonical_ids(frame["id"]),
                "kind": frame["kind"],
                "vocabulary": frame["id"].str.extract(r"^([^:]+):"),
            }
        )
        for frame in records.frames("ids")
    ).filter(pl.col("kind").is_in(kinds) & pl.col("row").is_not_null())
    # a shared third-party xref proves nothing; a shared alternate id does
    alternates = additional.filter(pl.col("kind") == kinds[0]).select("row", "key")
    targets = pl.concat([primary, alternates])
    # several references of one concept to one vocabulary cannot all mean the same
    of_several = pl.col("key").n_unique().over("row", "vocabulary", "kind") > 1
    additional = additional.with_columns(
        is_xref=pl.col("kind") != kinds[0],
        of_several=pl.col("vocabulary").is_not_null() & of_several,
    )
    pairs = additional.join(targets, on="key", suffix="_b")
    files = _files_of(concepts, records).group_by("row").agg(pl.col("source").min())
    return (
        pairs.select(
            "is_xref",
            "of_several",
            a_refers=pl.col("row") < pl.col("row_b"),
            a=pl.min_horizontal("row", "row_b"),
            b=pl.max_horizontal("row", "row_b"),
        )
        .filter(pl.col("a") != pl.col("b"))
        .group_by("a", "b", maintain_order=True)
        .agg(
            pl.col("is_xref").all(),
            pl.col("of_several").any(),
            a_refers=pl.col("a_refers").any(),
            b_refers=pl.col("a_refers").not_().any(),
        )
        .join(files.rename({"row": "a", "source": "file_a"}), on="a", maintain_order="left")
        .join(files.rename({"row": "b", "source": "file_b"}), on="b", maintain_order="left")
    )


def _compare_names(
    links: pl.DataFrame, concepts: Concepts, records: CollectedRecords
) -> pl.DataFrame:
    """Say of links whether the names of both ends ``differ``.

    They do if both have names in one language, and in none is the preferred name of the concept
    that refers, in any word order and number, a name of the one that it refers to.
    """
    names = _normal_names(pl.concat([links["a"], links["b"]]).unique(), concepts, records)
    preferred = names.filter("preferred")
    pairs = links.select("a", "b")
    first = pairs.join(preferred, left_on="a", right_on="row")
    second = pairs.join(preferred, left_on="b", right_on="row")
    comparable = first.join(second, on=["a", "b", "language"], how="semi").select("a", "b")
    first = first.join(links.filter("a_refers"), on=["a", "b"], how="semi")
    second = second.join(links.filter("b_refers"), on=["a", "b"], how="semi")
    of_other = names.select("row", "language", "form").unique()
    key = ["language", "form"]
    alike = pl.concat(
        [
            first.join(of_other, left_on=["b", *key], right_on=["row", *key], how="semi"),
            second.join(of_other, left_on=["a", *key], right_on=["row", *key], how="semi"),
        ]
    ).select("a", "b")
    differ = comparable.unique().join(alike, on=["a", "b"], how="anti")
    return links.join(
        differ.with_columns(differ=pl.lit(True)), on=["a", "b"], how="left", maintain_order="left"
    ).with_columns(pl.col("differ").fill_null(False))


_SIGNS = re.compile(r"[+<>=\u2264\u2265%]|[-\u2212\u2013](?=\s*(?:$|[)\]]))")
"""Signs that tell names apart: *Rh +* and *Rh -*."""


def merge_key(name: str) -> str:
    """Return what names have in common that are one name in two sources.

    It is the key of look-ups, and the signs in the name, which that leaves out.

    Args:
        name: Name of a concept.

    >>> merge_key("Type-2 Diabetes") == merge_key("type 2 diabetes"), merge_key("Rh +")
    (True, 'rh+')
    """
    return normalise(name) + "".join(_SIGNS.findall(unicodedata.normalize("NFKC", name)))


def _name_links(concepts: Concepts, records: CollectedRecords) -> pl.DataFrame:
    """Return pairs of concepts of different sources with an equal name in one language.

    The name is the preferred name of one, and that or a synonym of the other; not a broader,
    narrower or related name, or an abbreviation. A pair with a preferred name in common comes
    before others. Not used are names that several concepts of a source have, the partners of a
    concept that has several in one source, and pairs whose types differ (:func:`_compare_types`).
    """
    names = _shared_names(concepts, records)
    key = ["language", "key"]
    names = names.with_columns(
        ambiguous=(pl.col("row").n_unique().over(*key, "source") > 1).any().over(*key),
        first=pl.col("row").min().over(key),
    )
    ambiguous = names.filter(pl.col("ambiguous") & (pl.col("row") != pl.col("first"))).select(
        "name", a="first", b="row", reason=pl.lit(SHARED)
    )
    certain = names.filter(~pl.col("ambiguous"))
    pairs = (
        certain.join(certain, on=key, suffix="_b")
        .filter(pl.col("row") < pl.col("row_b"))
        .with_columns(rank=pl.col("preferred").cast(pl.UInt8) + pl.col("preferred_b"))
        .sort("rank", descending=True, maintain_order=True)
        .unique(["row", "row_b"], keep="first", maintain_order=True)
        .rename({"row": "a", "row_b": "b"})
    )
    pairs = _compare_types(pairs, concepts, records)
    best = pl.col("rank").filter(~pl.col("differ")).max()
    is_best = (pl.col("rank") == best.over("a", "source_b")) & (
        pl.col("rank") == best.over("b", "source")
    )
    pairs = pairs.with_columns(is_best=is_best.fill_null(False) & ~pl.col("differ"))
    others = [
        (pl.col(other).filter("is_best").n_unique().over(one, of) > 1)
        for one, other, of in (("a", "b", "source_b"), ("b", "a", "source"))
    ]
    judged = pairs.select(
        "name",
        "a",
        "b",
        reason=pl.when("differ")
        .then(pl.lit(OTHER_TYPES))
        .when(pl.col("rank") == 0)
        .then(pl.lit(SYNONYMS))
        .when(~pl.col("is_best") | others[0] | others[1])
        .then(pl.lit(CANDIDATES)),
    )
    every = pl.concat([judged, ambiguous]).unique(["a", "b"], keep="first", maintain_order=True)
    return every.select("a", "b", "reason", "name", by=pl.lit(NAME))


def _shared_names(concepts: Concepts, records: CollectedRecords) -> pl.DataFrame:
    """Return the preferred and exact names that two sources have, once for a concept in each."""
    kinds = [NAME_KINDS.index(kind) for kind in (NameKind.PREFERRED, NameKind.SYNONYM)]
    parts = []
    for frame in records.frames("names"):
        part = frame.select(
            "language",
            name="text",
            row=concepts.rows_of(frame["concept"]),
            source=_source_of(frame["file"], records),
            own=pl.col("kind") == kinds[0],
        ).filter(frame["kind"].is_in(kinds))
        parts.append(part.with_columns(key=pl.Series(hash_names(text_array(part["name"])))))
    in_source = pl.col("own").any().over("row", "language", "source")
    is_first = pl.int_range(pl.len()).over("row", "language", "source") == 0
    names = (
        pl.concat(parts)
        # of a source without a preferred name the first one
        .with_columns(preferred=pl.col("own") | (~in_source & is_first))
        .filter(pl.col("source").n_unique().over("language", "key") > 1)
    )
    keys = pl.Series("key", [merge_key(name) for name in names["name"]], dtype=pl.String)
    return (
        names.with_columns(keys)
        .group_by("language", "key", "row", "source", maintain_order=True)
        .agg(pl.col("name").first(), pl.col("preferred").any())
        .filter(pl.col("source").n_unique().over("language", "key") > 1)
    )


def _compare_types(
    pairs: pl.DataFrame, concepts: Concepts, records: CollectedRecords
) -> pl.DataFrame:
    """Say of pairs whether their types ``differ``: none is equal by its code or its label.

    This is only said where both have types, and their sources some type in common: the types of
    two ontologies are often not the same kinds of things (``human_phenotype``, ``T047``).
    """
    codes = records.vocabularies["type"].labels
    words = [[code.casefold(), records.labels.get(code, ("",))[0].casefold()] for code in codes]
    by_type = pl.DataFrame(
        {"type": range(len(codes)), "word": words},
        {"type": pl.UInt32, "word": pl.List(pl.String)},
    )
    types = pl.concat(
        frame.select("type", row=concepts.rows_of(frame["concept"]))
        for frame in records.frames("types")
    )
    words_of = types.unique().join(by_type, on="type").explode("word").filter(pl.col("word") != "")
    rows = words_of["row"].implode()
    alike = (
        pairs.select("a", "b")
        .join(words_of, left_on="a", right_on="row")
        .join(words_of, left_on=["b", "word"], right_on=["row", "word"], how="semi")
        .select("a", "b", alike=pl.lit(True))
        .unique()
    )
    of_source = _files_of(concepts, records).join(words_of, on="row").select("source", "word")
    comparable = (
        of_source.unique()
        .join(of_source.unique(), on="word", suffix="_b")
        .select("source", "source_b", comparable=pl.lit(True))
        .unique()
    )
    both = pl.col("a").is_in(rows) & pl.col("b").is_in(rows) & pl.col("comparable").is_not_null()
    return (
        pairs.join(alike, on=["a", "b"], how="left", maintain_order="left")
        .join(comparable, on=["source", "source_b"], how="left", maintain_order="left")
        .with_columns(differ=both & pl.col("alike").is_null())
    )


def _normal_names(rows: pl.Series, concepts: Concepts, records: CollectedRecords) -> pl.DataFrame:
    """Return the names of rows: language, normal form, whether preferred in the language."""
    parts = [
        pl.DataFrame(
            {
                "row": concepts.rows_of(frame["concept"]),
                "text": frame["text"],
                "language": frame["language"],
                "other": frame["kind"] != NAME_KINDS.index(NameKind.PREFERRED),
            }
        ).filter(pl.col("row").is_in(rows.implode()))
        for frame in records.frames("names")
    ]
    words = (
        pl.col("text")
        .str.to_lowercase()
        .str.replace_all(r"['’]s\b", "")
        .str.replace_all(r"[^\p{L}\p{N}]+", " ")
        .str.strip_chars()
        .str.split(" ")
        .list.eval(pl.element().str.replace(r"(?:es|s)$", ""))
        .list.sort()
        .list.join(" ")
    )
    return pl.concat(parts).select(
        "row",
        "language",
        form=words,
        # of a language without a preferred name the first one
        preferred=~pl.col("other")
        | (pl.col("other").all() & (pl.int_range(pl.len()) == 0)).over("row", "language"),
    )


def _files_of(concepts: Concepts, records: CollectedRecords) -> pl.DataFrame:
    """Return which sources contain which row, each pair once."""
    parts = []
    for table in ("concepts", "names"):
        for frame in records.frames(table):
            rows, source = concepts.rows_of(frame["concept"]), _source_of(frame["file"], records)
            parts.append(pl.DataFrame({"row": rows, "source": source}).unique(maintain_order=True))
    return pl.concat(parts).unique(maintain_order=True)


def _source_of(files: pl.Series, records: CollectedRecords) -> pl.Series:
    """Return the source of each file: a folder is one source."""
    sources = [records.logs.index(log) for log in records.logs]
    return files.replace_strict(list(range(len(sources))), sources, return_dtype=pl.UInt16)


def _components(n: int, a: Uints, b: Uints) -> Uints:
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
