"""Sort several columns of small numbers as one column of 64-bit numbers.

Sorting plain numbers is several times faster than sorting rows of a table, and the columns of
a store are small: 4 million concepts take 22 bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from biograft.kb.collector import Gathered, load_frame, save_frame
from biograft.kb.concepts import DROPPED, Concepts, canonical_ids
from biograft.kb.config import NameRules
from biograft.kb.keys import U64, hash_names, hash_texts, make_index
from biograft.kb.tables import ID_KINDS, NAME_KINDS, TableWriter
from biograft.records import IdKind, NameKind
from biograft.sources import KEPT_EXAMPLES, ReadLog

Column = npt.NDArray[Any]


def bits_for(n: int) -> int:
    """How many bits the numbers below ``n`` take."""
    return max(int(n) - 1, 0).bit_length()


def sort_rows(columns: Sequence[Column], sizes: Sequence[int]) -> list[Column]:
    """Sort rows by all their columns, the first weighing most; column k is below ``sizes[k]``."""
    widths = [bits_for(size) for size in sizes]
    if sum(widths) > 64:
        order = np.lexsort(tuple(reversed(columns)))
        return [column[order] for column in columns]
    packed = np.zeros(len(columns[0]), np.uint64)
    for column, width in zip(columns, widths, strict=True):
        packed <<= np.uint64(width)
        packed |= column.astype(np.uint64)
    packed.sort()
    unpacked: list[Column] = []
    for column, width in zip(reversed(columns), reversed(widths), strict=True):
        unpacked.append((packed & np.uint64((1 << width) - 1)).astype(column.dtype))
        packed >>= np.uint64(width)
    return unpacked[::-1]


def first_of_runs(*columns: Column) -> npt.NDArray[np.bool_]:
    """Mark the first of each run of rows that agree in all columns."""
    first = np.zeros(len(columns[0]), bool)
    if len(first):
        first[0] = True
        for column in columns:
            first[1:] |= column[1:] != column[:-1]
    return first


SYMBOLS = r"""[,.;{}\[\]()+\-_*/?!\\"'`=%<>]"""
"""What GenBioEL turns into blanks in names."""


def apply_text_rules(frame: pl.DataFrame, rules: NameRules) -> pl.DataFrame:
    """Lower the case and remove symbols, where wanted."""
    text = pl.col("text")
    if rules.lowercase:
        text = text.str.to_lowercase()
    if rules.strip_symbols:
        text = text.str.replace_all(SYMBOLS, " ").str.replace_all(r"\s+", " ").str.strip_chars()
    return frame.with_columns(text) if rules.lowercase or rules.strip_symbols else frame


def order_names(frame: pl.DataFrame, main_languages: list[int]) -> pl.DataFrame:
    """Order names by concept, the concept's own name first, and drop repeats.

    Own name: a preferred one, in the first of the main languages that has one; then in order of
    reading. A repeat is the same text in the same language of the same concept.
    """
    rank, n_ranks = _rank(frame, main_languages), 2 * (len(main_languages) + 1)
    places = np.arange(frame.height, dtype=np.uint32)
    rows = frame["row"].to_numpy()
    n_rows = int(rows.max(initial=0)) + 1
    order = sort_rows([rows, rank, places], [n_rows, n_ranks, frame.height])[2]
    if not np.array_equal(order, places):
        frame = frame[order]
    repeats = _repeats(frame)
    return frame.filter(pl.Series(~repeats)) if repeats.any() else frame


def _repeats(frame: pl.DataFrame) -> npt.NDArray[np.bool_]:
    """Mark names that stand before in their concept in the same language.

    Short digests of (concept, language, text) find the few rows that may be repeats; those are
    compared for what they are. Frames are grouped by concept.
    """
    digest = frame.select("row", "language", "text").hash_rows().to_numpy() >> np.uint64(32)
    places = np.arange(frame.height, dtype=np.uint32)
    digest, order = sort_rows([digest, places], [1 << 32, frame.height])
    first = first_of_runs(digest)
    alone = first.copy()
    alone[:-1] &= first[1:]
    suspects = np.sort(order[~alone])
    chosen = frame[suspects].select("row", "language", "text")
    kept = chosen.with_row_index("n").unique(["row", "language", "text"], keep="first")["n"]
    repeats = np.zeros(frame.height, bool)
    repeats[suspects] = True
    repeats[suspects[kept.to_numpy()]] = False
    return repeats


def _rank(frame: pl.DataFrame, main_languages: list[int]) -> npt.NDArray[np.uint16]:
    """Preferred names come first, and of these and of the others the main languages."""
    language = frame["language"].to_numpy()
    n_languages = len(main_languages)
    rank = np.full(len(language), n_languages, np.uint16)
    for place in reversed(range(n_languages)):
        rank[language == main_languages[place]] = place
    rank[frame["kind"].to_numpy() != NAME_KINDS.index(NameKind.PREFERRED)] += n_languages + 1
    return rank


def shared_to_drop(
    rows: npt.NDArray[np.uint32], keys: npt.NDArray[np.uint64]
) -> npt.NDArray[np.bool_]:
    """Say which names to drop so that each stands in one concept: the one with fewest names.

    Of several concepts with as few names the first keeps it, and no concept loses its last
    name: one that would keeps its first. Rows must be sorted.
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
    """See a column of texts as one Arrow array."""
    array = texts.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    return array if array.type == pa.large_string() else array.cast(pa.large_string())


PART_ROWS = 6_000_000
"""A table with more rows is assembled in parts."""

Ends = npt.NDArray[np.uint32]


@dataclass
class Assembly:
    """A store in the making: what is known, where it goes, and what was counted."""

    gathered: Gathered
    concepts: Concepts
    folder: Path
    work: Path
    n_merged: dict[str, int] = field(default_factory=dict)
    n_shared: int = 0

    @property
    def n_concepts(self) -> int:
        """How many concepts the store has."""
        return len(self.concepts.ids)

    def parts(self, table: str, column: str) -> Iterator[pl.DataFrame]:
        """Give the facts of ranges of concepts with their ``row``, those of others rejected."""
        n_parts = max(1, -(-self.gathered.n_rows[table] // PART_ROWS))
        groups = self._groups(table)
        resolved = (self.resolve(pl.concat(group), table, column) for group in groups)
        if n_parts == 1:
            yield from resolved
        else:
            yield from self._split(resolved, table, n_parts)
        self.gathered.drop(table)

    def _groups(self, table: str) -> Iterator[list[pl.DataFrame]]:
        """Give gathered frames together up to the size of a part: one look-up serves them all."""
        group: list[pl.DataFrame] = []
        n_rows = 0
        for frame in self.gathered.frames(table):
            if group and n_rows + frame.height > PART_ROWS:
                yield group
                group, n_rows = [], 0
            group.append(frame)
            n_rows += frame.height
        if group:
            yield group

    def resolve(self, frame: pl.DataFrame, table: str, column: str, name: str = "row") -> Any:
        """Add the row of the concept that a column names; facts about unknown ones go."""
        rows = self.concepts.rows_of(frame[column]).alias(name)
        known = (rows.is_not_null() & (rows != int(DROPPED))).fill_null(False)
        if not known.all():
            self._reject(frame.with_columns(rows), ~known, table, column, name)
        return frame.with_columns(rows).drop(column).filter(known)

    def _reject(
        self, frame: pl.DataFrame, unknown: pl.Series, table: str, column: str, name: str
    ) -> None:
        for part in frame.filter(unknown).partition_by("file"):
            number = int(part["file"][0])
            log, path = self.gathered.logs[number], self.gathered.files[number]
            dropped = int((part[name] == int(DROPPED)).sum())
            log.filter("concept left out", dropped)
            rest = part.filter(part[name].is_null())
            known_out = canonical_ids(rest[column]).is_in(self.left_out.implode())
            log.filter("concept left out", int(known_out.sum()))
            rest = rest.filter(~known_out)
            reason = f"{table}: {column} is no concept"
            for line, identifier in rest.select("line", column).head(KEPT_EXAMPLES).iter_rows():
                log.reject(reason, line, identifier, path=path)
            if rest.height > KEPT_EXAMPLES:
                log.rejected.counts[reason] += rest.height - KEPT_EXAMPLES

    @cached_property
    def left_out(self) -> pl.Series:
        """The ids of all concepts that readers left out by a filter."""
        chunks = [
            pl.Series(list(ids), dtype=pl.String) for log in self.logs for ids in log.left_out
        ]
        empty = pl.Series([], dtype=pl.String)
        return canonical_ids(pl.concat([empty, *chunks]).unique())

    @property
    def logs(self) -> list[ReadLog]:
        """The logs of all sources, each once."""
        return list(dict.fromkeys(self.gathered.logs))

    def _split(
        self, frames: Iterator[pl.DataFrame], table: str, n_parts: int
    ) -> Iterator[pl.DataFrame]:
        """Sort facts into ranges of concepts on disk, then give one range after the other."""
        width = -(-self.n_concepts // n_parts)
        files: list[list[Path]] = [[] for _ in range(n_parts)]
        for k, frame in enumerate(frames):
            for part in frame.with_columns(part=pl.col("row") // width).partition_by("part"):
                number = int(part["part"][0])
                path = self.work / f"part-{table}-{number}-{k:06d}.arrow"
                save_frame(part.drop("part"), path)
                files[number].append(path)
        for paths in files:
            if paths:
                yield pl.concat([load_frame(path) for path in paths])
                for path in paths:
                    path.unlink()

    def ends(self, counts: npt.NDArray[np.int64]) -> Ends:
        """Turn rows per concept into the end of each concept's rows."""
        return np.cumsum(counts).astype(np.uint32)

    def count(self, rows: Any) -> npt.NDArray[np.int64]:
        """Count rows per concept."""
        return np.bincount(np.asarray(rows), minlength=self.n_concepts)


def write_names(assembly: Assembly, rules: NameRules, main_languages: list[int]) -> Ends:
    """Write the names and their index by normalised key."""
    counts = np.zeros(assembly.n_concepts, np.int64)
    keys: list[npt.NDArray[np.uint64]] = []
    parts = _ordered_names(assembly, rules, main_languages)
    if rules.resolve_shared:
        parts = _without_shared(assembly, parts)
    with TableWriter(assembly.folder, "names") as writer:
        for frame in parts:
            texts = text_array(frame["text"])
            keys.append(hash_names(texts))
            counts += assembly.count(frame["row"])
            writer.write({**_columns(frame, "language", "kind", "source"), "text": texts})
    _write_index(assembly, "names_index", np.concatenate(keys or [np.zeros(0, np.uint64)]))
    return assembly.ends(counts)


def _ordered_names(
    assembly: Assembly, rules: NameRules, main_languages: list[int]
) -> Iterator[pl.DataFrame]:
    for frame in assembly.parts("names", "concept"):
        ruled = apply_text_rules(frame, rules)
        blank = ruled["text"].str.strip_chars() == ""
        if blank.any():
            _reject_blank(assembly, frame.filter(blank))
            ruled = ruled.filter(~blank)
        ordered = order_names(ruled.drop("file", "line"), main_languages)
        _add(assembly.n_merged, "names", ruled.height - ordered.height)
        yield ordered


def _reject_blank(assembly: Assembly, frame: pl.DataFrame) -> None:
    for file, line, text in frame.select("file", "line", "text").iter_rows():
        log, path = assembly.gathered.logs[file], assembly.gathered.files[file]
        log.reject("name is blank or only symbols", line, text, path=path)


def _without_shared(assembly: Assembly, parts: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Drop shared names, which needs all names to be known: parts wait on disk meanwhile."""
    paths, rows, keys = [], [], []
    for k, frame in enumerate(parts):
        rows.append(frame["row"].to_numpy())
        keys.append(hash_names(text_array(frame["text"])))
        paths.append(assembly.work / f"ordered-names-{k:06d}.arrow")
        save_frame(frame, paths[-1])
    if not paths:
        return
    drop = shared_to_drop(np.concatenate(rows), np.concatenate(keys))
    assembly.n_shared = int(drop.sum())
    start = 0
    for path, part_rows in zip(paths, rows, strict=True):
        part_drop = drop[start : start + len(part_rows)]
        start += len(part_rows)
        yield load_frame(path).filter(pl.Series(~part_drop))
        path.unlink()


def _write_index(assembly: Assembly, table: str, hashes: U64) -> None:
    with TableWriter(assembly.folder, table) as writer:
        writer.write({"entry": make_index(hashes)})


def write_definitions(assembly: Assembly) -> Ends:
    """Write the definitions, each text once a concept and language."""
    return _write_grouped(
        assembly, "definitions", ["language", "text"], ["text", "language", "source"]
    )


def write_types(assembly: Assembly) -> Ends:
    """Write the semantic types."""
    return _write_grouped(assembly, "types", ["type"], ["type"])


def _write_grouped(assembly: Assembly, table: str, distinct: list[str], columns: list[str]) -> Ends:
    counts = np.zeros(assembly.n_concepts, np.int64)
    with TableWriter(assembly.folder, table) as writer:
        for frame in assembly.parts(table, "concept"):
            kept = frame.unique(["row", *distinct], keep="first", maintain_order=True)
            kept = kept.sort("row", maintain_order=True)
            _add(assembly.n_merged, table, frame.height - kept.height)
            counts += assembly.count(kept["row"])
            writer.write(_columns(kept, *columns))
    return assembly.ends(counts)


def write_ids(assembly: Assembly) -> Ends:
    """Write the further ids, and the index of all ids by their canonical spelling."""
    own = assembly.concepts.ids
    lost = assembly.concepts.merged_ids()
    alternate = ID_KINDS.index(IdKind.ALTERNATE)
    frames = [
        pl.DataFrame(
            {
                "row": lost["concept"],
                "id": lost["id"],
                "kind": pl.Series([alternate], dtype=pl.UInt8).new_from_index(0, lost.height),
            }
        )
    ]
    frames += [part.select("row", "id", "kind") for part in assembly.parts("ids", "concept")]
    found = pl.concat(frames)
    kept = found.unique(["row", "id"], keep="first", maintain_order=True)
    kept = kept.filter(kept["id"] != own.gather(kept["row"])).sort("row", maintain_order=True)
    _add(assembly.n_merged, "ids", found.height - kept.height)
    with TableWriter(assembly.folder, "ids") as writer:
        writer.write(_columns(kept, "id", "kind"))
    _write_id_index(assembly, kept)
    return assembly.ends(assembly.count(kept["row"]))


def _write_id_index(assembly: Assembly, ids: pl.DataFrame) -> None:
    parts = [canonical_ids(assembly.concepts.ids), canonical_ids(ids["id"])]
    hashes = [hash_texts(text_array(part)) for part in parts]
    _write_index(assembly, "ids_index", np.concatenate(hashes))


def write_relations(assembly: Assembly) -> tuple[Ends, Ends]:
    """Write the relations grouped by head, and their rows grouped by tail."""
    outgoing = np.zeros(assembly.n_concepts, np.int64)
    tails: list[npt.NDArray[np.uint32]] = []
    with TableWriter(assembly.folder, "relations") as writer:
        for part in assembly.parts("relations", "head"):
            frame = assembly.resolve(part, "relations", "tail", "target")
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
    """Sort relations by head, tail and name; of one that several sources give the first stays."""
    vocabularies = assembly.gathered.vocabularies
    columns = sort_rows(
        [frame[name].to_numpy() for name in ("row", "target", "relation", "source")],
        [
            assembly.n_concepts,
            assembly.n_concepts,
            len(vocabularies["relation"]),
            len(vocabularies["source"]),
        ],
    )
    first = first_of_runs(*columns[:3])
    return columns if first.all() else [column[first] for column in columns]


def _columns(frame: pl.DataFrame, *names: str) -> dict[str, Any]:
    return {"concept": frame["row"], **{name: frame[name] for name in names}}


def _add(counts: dict[str, int], table: str, n: int) -> None:
    counts[table] = counts.get(table, 0) + n
