"""Assembly of a store: order, deduplicate and index the collected records, and write its tables.

Rows are sorted as packed 64-bit integers, several times faster than sorting the rows of a table;
the columns of a store are small: 4 million concepts take 22 bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from biograft.kb.collector import CollectedRecords, load_frame, save_frame
from biograft.kb.concepts import DROPPED, Concepts, canonical_ids
from biograft.kb.config import NameRules
from biograft.kb.keys import U64, hash_names, hash_texts, make_index
from biograft.kb.records import IdKind, NameKind
from biograft.kb.retired import retired_ids
from biograft.kb.sources import KEPT_EXAMPLES, ReadLog
from biograft.kb.tables import ID_KINDS, NAME_KINDS, TableWriter

Column = npt.NDArray[Any]


def bit_width(n: int) -> int:
    """Return the number of bits of the integers below ``n``."""
    return max(int(n) - 1, 0).bit_length()


def sort_rows(columns: Sequence[Column], sizes: Sequence[int]) -> list[Column]:
    """Sort rows by all columns, the first one first; values of column k are below ``sizes[k]``."""
    widths = [bit_width(size) for size in sizes]
    if sum(widths) > 64:
        order = np.lexsort(tuple(reversed(columns)))
        return [column[order] for column in columns]
    packed = np.zeros(len(columns[0]), np.uint64)
    for column, width in zip(columns, widths, strict=True):
        packed <<= np.uint64(width)
        packed |= column.astype(np.uint64)
    if (packed[1:] < packed[:-1]).any():  # sources are often in order
        packed.sort()
    unpacked: list[Column] = []
    for column, width in zip(reversed(columns), reversed(widths), strict=True):
        unpacked.append((packed & np.uint64((1 << width) - 1)).astype(column.dtype))
        packed >>= np.uint64(width)
    return unpacked[::-1]


def run_starts(*columns: Column) -> npt.NDArray[np.bool_]:
    """Mark the first row of each run of rows that are equal in all columns."""
    first = np.zeros(len(columns[0]), bool)
    if len(first):
        first[0] = True
        for column in columns:
            first[1:] |= column[1:] != column[:-1]
    return first


SYMBOLS = r"""[,.;{}\[\]()+\-_*/?!\\"'`=%<>]"""
"""Symbols that GenBioEL replaces by spaces in names."""


def apply_text_rules(frame: pl.DataFrame, rules: NameRules) -> pl.DataFrame:
    """Lower-case names and remove symbols, as the rules say."""
    text = pl.col("text")
    if rules.lowercase:
        text = text.str.to_lowercase()
    if rules.strip_symbols:
        text = text.str.replace_all(SYMBOLS, " ").str.replace_all(r"\s+", " ").str.strip_chars()
    return frame.with_columns(text) if rules.lowercase or rules.strip_symbols else frame


def order_names(frame: pl.DataFrame, main_languages: list[int]) -> pl.DataFrame:
    """Order names by concept, the preferred name first, and drop duplicates.

    The preferred name is of kind ``preferred`` in the first main language that has one; the others
    keep the order of reading. Duplicates have the same text, language and concept.
    """
    rank, n_ranks = _rank(frame, main_languages), 2 * (len(main_languages) + 1)
    positions = np.arange(frame.height, dtype=np.uint32)
    rows = frame["row"].to_numpy()
    n_rows = int(rows.max(initial=0)) + 1
    order = sort_rows([rows, rank, positions], [n_rows, n_ranks, frame.height])[2]
    if not np.array_equal(order, positions):
        frame = frame[order]
    duplicates = _duplicates(frame)
    return frame.filter(pl.Series(~duplicates)) if duplicates.any() else frame


def _duplicates(frame: pl.DataFrame) -> npt.NDArray[np.bool_]:
    """Mark names that occur earlier in their concept in the same language.

    Short digests of (concept, language, text) find the few rows that may be duplicates; only those
    are compared in full. Frames are grouped by concept.
    """
    digest = frame.select("row", "language", "text").hash_rows().to_numpy() >> np.uint64(32)
    positions = np.arange(frame.height, dtype=np.uint32)
    digest, order = sort_rows([digest, positions], [1 << 32, frame.height])
    first = run_starts(digest)
    single = first.copy()
    single[:-1] &= first[1:]
    suspects = np.sort(order[~single])
    candidates = frame[suspects].select("row", "language", "text")
    numbered = candidates.with_row_index("n")
    first_rows = numbered.unique(["row", "language", "text"], keep="first")["n"]
    duplicates = np.zeros(frame.height, bool)
    duplicates[suspects] = True
    duplicates[suspects[first_rows.to_numpy()]] = False
    return duplicates


def _rank(frame: pl.DataFrame, main_languages: list[int]) -> npt.NDArray[np.uint16]:
    """Rank names: preferred ones first, and by main language within each kind."""
    language = frame["language"].to_numpy()
    n_languages = len(main_languages)
    rank = np.full(len(language), n_languages, np.uint16)
    for position in reversed(range(n_languages)):
        rank[language == main_languages[position]] = position
    rank[frame["kind"].to_numpy() != NAME_KINDS.index(NameKind.PREFERRED)] += n_languages + 1
    return rank


def shared_names(
    rows: npt.NDArray[np.uint32], keys: npt.NDArray[np.uint64]
) -> npt.NDArray[np.bool_]:
    """Mark names to drop so that each belongs to one concept: the one with the fewest names.

    Among concepts with equally few names the first one keeps the name. A concept that would lose
    all names keeps its first. Rows must be sorted.
    """
    frame = pl.DataFrame({"row": rows, "key": keys})
    sizes = frame.group_by("row").agg(n=pl.col("key").n_unique())
    frame = frame.join(sizes, on="row", how="left", maintain_order="left")
    owner = (
        frame.unique(["row", "key"])
        .sort("n", "row")
        .unique("key", keep="first", maintain_order=True)
        .select("key", owner="row")
    )
    owners = frame.join(owner, on="key", how="left", maintain_order="left")["owner"].to_numpy()
    drop: npt.NDArray[np.bool_] = owners != rows
    starts = np.flatnonzero(np.diff(rows, prepend=np.uint32(0xFFFFFFFF)))
    if len(rows):
        n_kept = np.add.reduceat(~drop, starts)
        drop[starts[n_kept == 0]] = False
    return drop


def text_array(texts: pl.Series) -> pa.Array:
    """Return a column of texts as one Arrow array."""
    array = texts.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    return array if array.type == pa.large_string() else array.cast(pa.large_string())


PARTITION_ROWS = 6_000_000
"""A table with more rows is assembled in partitions."""

Ends = npt.NDArray[np.uint32]


@dataclass
class Assembly:
    """State of a build: collected records, concepts, output folder and counts."""

    records: CollectedRecords
    concepts: Concepts
    folder: Path
    work: Path
    n_merged: dict[str, int] = field(default_factory=dict)
    n_shared: int = 0
    lock: Lock = field(default_factory=Lock)
    """Held while rows are counted in the logs: tables are written side by side."""

    @property
    def n_concepts(self) -> int:
        """Number of concepts in the store."""
        return len(self.concepts.ids)

    def partitions(self, table: str, column: str) -> Iterator[pl.DataFrame]:
        """Yield a table by ranges of concepts, with their ``row``; reject unknown concepts."""
        n_partitions = max(1, -(-self.records.n_rows[table] // PARTITION_ROWS))
        groups = self._groups(table)
        resolved = (self.resolve(pl.concat(group), table, column) for group in groups)
        if n_partitions == 1:
            yield from resolved
        else:
            yield from self._partition(resolved, table, n_partitions)
        self.records.drop(table)

    def _groups(self, table: str) -> Iterator[list[pl.DataFrame]]:
        """Group frames up to the size of a partition, so that each group takes one look-up."""
        group: list[pl.DataFrame] = []
        n_rows = 0
        for frame in self.records.frames(table):
            if group and n_rows + frame.height > PARTITION_ROWS:
                yield group
                group, n_rows = [], 0
            group.append(frame)
            n_rows += frame.height
        if group:
            yield group

    def resolve(self, frame: pl.DataFrame, table: str, column: str, name: str = "row") -> Any:
        """Add the row of the concept that a column names; drop rows of unknown concepts."""
        rows = self.concepts.rows_of(frame[column]).alias(name)
        known = (rows.is_not_null() & (rows != int(DROPPED))).fill_null(False)
        if not known.all():
            with self.lock:
                self._reject(frame.with_columns(rows), ~known, table, column, name)
        return frame.with_columns(rows).drop(column).filter(known)

    def _reject(
        self, frame: pl.DataFrame, unknown: pl.Series, table: str, column: str, name: str
    ) -> None:
        for of_file in frame.filter(unknown).partition_by("file"):
            file = int(of_file["file"][0])
            log, path = self.records.logs[file], self.records.files[file]
            dropped = int((of_file[name] == int(DROPPED)).sum())
            log.filter("concept left out", dropped)
            rest = of_file.filter(of_file[name].is_null())
            left_out_rows = canonical_ids(rest[column]).is_in(self.left_out.implode())
            log.filter("concept left out", int(left_out_rows.sum()))
            rest = rest.filter(~left_out_rows)
            reason = f"{table}: {column} is no concept"
            for line, identifier in rest.select("line", column).head(KEPT_EXAMPLES).iter_rows():
                log.reject(reason, line, identifier, path=path)
            if rest.height > KEPT_EXAMPLES:
                log.rejected.counts[reason] += rest.height - KEPT_EXAMPLES

    @cached_property
    def left_out(self) -> pl.Series:
        """Ids of all concepts that readers filtered out."""
        chunks = [
            pl.Series(list(ids), dtype=pl.String) for log in self.logs for ids in log.left_out
        ]
        empty = pl.Series([], dtype=pl.String)
        return canonical_ids(pl.concat([empty, *chunks]).unique())

    @property
    def logs(self) -> list[ReadLog]:
        """The logs of all sources, each once."""
        return list(dict.fromkeys(self.records.logs))

    def _partition(
        self, frames: Iterator[pl.DataFrame], table: str, n_partitions: int
    ) -> Iterator[pl.DataFrame]:
        """Partition a table by ranges of concepts on disk, then yield one range after the other."""
        width = -(-self.n_concepts // n_partitions)
        files: list[list[Path]] = [[] for _ in range(n_partitions)]
        for k, frame in enumerate(frames):
            numbered = frame.with_columns(partition=pl.col("row") // width)
            for rows in numbered.partition_by("partition"):
                partition = int(rows["partition"][0])
                path = self.work / f"partition-{table}-{partition}-{k:06d}.arrow"
                save_frame(rows.drop("partition"), path)
                files[partition].append(path)
        for paths in files:
            if paths:
                yield pl.concat([load_frame(path) for path in paths])
                for path in paths:
                    path.unlink()

    def ends(self, counts: npt.NDArray[np.int64]) -> Ends:
        """Return the end of each concept's rows from the number of rows per concept."""
        return np.cumsum(counts).astype(np.uint32)

    def count(self, rows: Any) -> npt.NDArray[np.int64]:
        """Count rows per concept."""
        return np.bincount(np.asarray(rows), minlength=self.n_concepts)


def write_names(assembly: Assembly, rules: NameRules, main_languages: list[int]) -> Ends:
    """Write the names and their index by normalised key."""
    counts = np.zeros(assembly.n_concepts, np.int64)
    keys: list[npt.NDArray[np.uint64]] = []
    partitions = _ordered_names(assembly, rules, main_languages)
    if rules.resolve_shared:
        partitions = _without_shared(assembly, partitions)
    with TableWriter(assembly.folder, "names") as writer:
        for frame in partitions:
            texts = text_array(frame["text"])
            keys.append(hash_names(texts))
            counts += assembly.count(frame["row"])
            writer.write({**_columns(frame, "language", "kind", "source"), "text": texts})
    _write_index(assembly, "names_index", np.concatenate(keys or [np.zeros(0, np.uint64)]))
    return assembly.ends(counts)


def _ordered_names(
    assembly: Assembly, rules: NameRules, main_languages: list[int]
) -> Iterator[pl.DataFrame]:
    for frame in assembly.partitions("names", "concept"):
        ruled = apply_text_rules(frame, rules)
        empty = ruled["text"].str.strip_chars() == ""
        if empty.any():
            _reject_empty(assembly, frame.filter(empty))
            ruled = ruled.filter(~empty)
        ordered = order_names(ruled.drop("file", "line"), main_languages)
        _add(assembly.n_merged, "names", ruled.height - ordered.height)
        yield ordered


def _reject_empty(assembly: Assembly, frame: pl.DataFrame) -> None:
    for file, line, text in frame.select("file", "line", "text").iter_rows():
        log, path = assembly.records.logs[file], assembly.records.files[file]
        log.reject("name is empty or only symbols", line, text, path=path)


def _without_shared(
    assembly: Assembly, partitions: Iterator[pl.DataFrame]
) -> Iterator[pl.DataFrame]:
    """Drop shared names; partitions are kept on disk until all names are known."""
    paths, rows, keys = [], [], []
    for k, frame in enumerate(partitions):
        rows.append(frame["row"].to_numpy())
        keys.append(hash_names(text_array(frame["text"])))
        paths.append(assembly.work / f"ordered-names-{k:06d}.arrow")
        save_frame(frame, paths[-1])
    if not paths:
        return
    drop = shared_names(np.concatenate(rows), np.concatenate(keys))
    assembly.n_shared = int(drop.sum())
    start = 0
    for path, partition_rows in zip(paths, rows, strict=True):
        dropped = drop[start : start + len(partition_rows)]
        start += len(partition_rows)
        yield load_frame(path).filter(pl.Series(~dropped))
        path.unlink()


def _write_index(assembly: Assembly, table: str, hashes: U64) -> None:
    with TableWriter(assembly.folder, table) as writer:
        writer.write({"entry": make_index(hashes)})


def write_definitions(assembly: Assembly) -> Ends:
    """Write the definitions, each text once per concept and language."""
    return _write_grouped(
        assembly, "definitions", ["language", "text"], ["text", "language", "source"]
    )


def write_types(assembly: Assembly) -> Ends:
    """Write the semantic types."""
    return _write_grouped(assembly, "types", ["type"], ["type"])


def _write_grouped(assembly: Assembly, table: str, distinct: list[str], columns: list[str]) -> Ends:
    counts = np.zeros(assembly.n_concepts, np.int64)
    with TableWriter(assembly.folder, table) as writer:
        for frame in assembly.partitions(table, "concept"):
            rows = frame.unique(["row", *distinct], keep="first", maintain_order=True)
            rows = rows.sort("row", maintain_order=True)
            _add(assembly.n_merged, table, frame.height - rows.height)
            counts += assembly.count(rows["row"])
            writer.write(_columns(rows, *columns))
    return assembly.ends(counts)


def write_ids(assembly: Assembly) -> Ends:
    """Write the additional ids, and the index of all ids by canonical spelling."""
    primary = assembly.concepts.ids
    merged = assembly.concepts.merged_ids()
    alternate = ID_KINDS.index(IdKind.ALTERNATE)
    frames = [
        pl.DataFrame(
            {
                "row": merged["concept"],
                "id": merged["id"],
                "kind": pl.Series([alternate], dtype=pl.UInt8).new_from_index(0, merged.height),
            }
        )
    ]
    frames += [rows.select("row", "id", "kind") for rows in assembly.partitions("ids", "concept")]
    frames.append(retired_ids(assembly.records, assembly.concepts))
    every = pl.concat(frames)
    ids = every.unique(["row", "id"], keep="first", maintain_order=True)
    ids = ids.filter(ids["id"] != primary.gather(ids["row"])).sort("row", maintain_order=True)
    _add(assembly.n_merged, "ids", every.height - ids.height)
    with TableWriter(assembly.folder, "ids") as writer:
        writer.write(_columns(ids, "id", "kind"))
    _write_id_index(assembly, ids)
    return assembly.ends(assembly.count(ids["row"]))


def _write_id_index(assembly: Assembly, ids: pl.DataFrame) -> None:
    columns = canonical_ids(assembly.concepts.ids), canonical_ids(ids["id"])
    hashes = [hash_texts(text_array(column)) for column in columns]
    _write_index(assembly, "ids_index", np.concatenate(hashes))


def write_relations(assembly: Assembly) -> tuple[Ends, Ends]:
    """Write the relations grouped by head, and their rows grouped by tail."""
    outgoing = np.zeros(assembly.n_concepts, np.int64)
    tails: list[npt.NDArray[np.uint32]] = []
    with TableWriter(assembly.folder, "relations") as writer:
        for partition in assembly.partitions("relations", "head"):
            frame = assembly.resolve(partition, "relations", "tail", "target")
            head, tail, relation, source = _sorted_relations(assembly, frame)
            _add(assembly.n_merged, "relations", frame.height - len(head))
            outgoing += assembly.count(head)
            tails.append(tail)
            columns = {"head": head, "relation": relation, "tail": tail, "source": source}
            writer.write(columns)
    tail = np.concatenate(tails or [np.zeros(0, np.uint32)])
    rows = np.arange(len(tail), dtype=np.uint32)
    _, by_tail = sort_rows([tail, rows], [assembly.n_concepts, len(rows)])
    with TableWriter(assembly.folder, "incoming") as writer:
        writer.write({"relation_row": by_tail})
    return assembly.ends(outgoing), assembly.ends(assembly.count(tail))


def _sorted_relations(assembly: Assembly, frame: pl.DataFrame) -> list[npt.NDArray[Any]]:
    """Sort relations by head, tail and name; keep each once, under its first source."""
    vocabularies = assembly.records.vocabularies
    columns = sort_rows(
        [frame[name].to_numpy() for name in ("row", "target", "relation", "source")],
        [
            assembly.n_concepts,
            assembly.n_concepts,
            len(vocabularies["relation"]),
            len(vocabularies["source"]),
        ],
    )
    first = run_starts(*columns[:3])
    return columns if first.all() else [column[first] for column in columns]


def _columns(frame: pl.DataFrame, *names: str) -> dict[str, Any]:
    return {"concept": frame["row"], **{name: frame[name] for name in names}}


def _add(counts: dict[str, int], table: str, n: int) -> None:
    counts[table] = counts.get(table, 0) + n
