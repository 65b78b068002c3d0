"""Assembly of a store: order, deduplicate and index the collected records, and write its tables.

Rows are sorted as packed 64-bit integers, several times faster than sorting the rows of a table;
the columns of a store are small: 4 million concepts take 22 bits.

Build a knowledge base: read sources, merge concepts, write tables and the manifest.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Event, Lock
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from biograft.arrays import Array, Flags, Ints, Uint64s, Uints
from biograft.artifacts import describe_files, hash_file, new_folder
from biograft.errors import InputError, OutputError, nearest
from biograft.kb.collector import CollectedRecords, text_array
from biograft.kb.concepts import (
    BY_NAME,
    DROPPED,
    OTHER_NAMES,
    SEVERAL,
    Concepts,
    add_alternates,
    canonical_ids,
    filter_first_source,
    filter_types,
    merge_concepts,
    number_concepts,
    retired_ids,
)
from biograft.kb.config import FIRST_SOURCE, BuildConfig, NameRules
from biograft.kb.hierarchy import Hierarchy
from biograft.kb.iris import Iris
from biograft.kb.keys import hash_names, hash_texts, make_index
from biograft.kb.manifest import BuildReport, SourceReport, is_store
from biograft.kb.names import language_code
from biograft.kb.records import IS_A, IdKind, NameKind
from biograft.kb.sources import KEPT_EXAMPLES, STARTER, ReadLog, SourceConfig, read_source, resolve
from biograft.kb.tables import GROUPED, ID_KINDS, NAME_KINDS, STORE, Table, TableWriter
from biograft.kb.vocabularies import last_numbers
from biograft.progress import Progress

Column = Array


def sort_rows(columns: Sequence[Column], sizes: Sequence[int]) -> list[Column]:
    """Sort rows by all columns, the first one first; values of column k are below ``sizes[k]``.

    Args:
        columns: Columns of equal length, the most significant first.
        sizes: Upper bound of the values of each column.
    """
    widths = [max(int(size) - 1, 0).bit_length() for size in sizes]
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


def run_starts(*columns: Column) -> Flags:
    """Mark the first row of each run of rows that are equal in all columns."""
    first = np.zeros(len(columns[0]), bool)
    if len(first):
        first[0] = True
        for column in columns:
            first[1:] |= column[1:] != column[:-1]
    return first


SYMBOLS = r"""[,.;{}\[\]()+\-_*/?!\\"'`=%<>]"""
"""Symbols that GenBioEL replaces by spaces in names."""


def order_names(frame: pl.DataFrame, main_languages: list[int]) -> pl.DataFrame:
    """Order names by concept, the preferred name first, and drop duplicates.

    The preferred name is of kind ``preferred`` in the first main language that has one; the others
    keep the order of reading. Duplicates have the same text, language and concept.

    Args:
        frame: Names with ``row``, ``kind``, ``language`` and ``text``.
        main_languages: Codes of the languages of preferred names, best first.
    """
    n_languages = len(main_languages)
    language = frame["language"].to_numpy()
    rank = np.full(len(language), n_languages, np.uint16)
    for position in reversed(range(n_languages)):
        rank[language == main_languages[position]] = position
    rank[frame["kind"].to_numpy() != NAME_KINDS.index(NameKind.PREFERRED)] += n_languages + 1
    positions = np.arange(frame.height, dtype=np.uint32)
    rows = frame["row"].to_numpy()
    n_rows = int(rows.max(initial=0)) + 1
    order = sort_rows([rows, rank, positions], [n_rows, 2 * (n_languages + 1), frame.height])[2]
    if not np.array_equal(order, positions):
        frame = frame[order]
    duplicates = _duplicates(frame)
    return frame.filter(pl.Series(~duplicates)) if duplicates.any() else frame


def _duplicates(frame: pl.DataFrame) -> Flags:
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


def shared_names(rows: Uints, keys: Uint64s) -> Flags:
    """Mark names to drop so that each belongs to one concept: the one with the fewest names.

    Among concepts with equally few names the first one keeps the name. A concept that would lose
    all names keeps its first. Rows must be sorted.

    Args:
        rows: Row of the concept of each name.
        keys: Hash of each normalised name.
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
    drop: Flags = owners != rows
    starts = np.flatnonzero(np.diff(rows, prepend=np.uint32(0xFFFFFFFF)))
    if len(rows):
        n_kept = np.add.reduceat(~drop, starts)
        drop[starts[n_kept == 0]] = False
    return drop


PARTITION_ROWS = 6_000_000
"""A table with more rows is assembled in partitions."""

Ends = Uints


@dataclass
class Assembly:
    """State of a build: collected records, concepts, output folder and counts."""

    records: CollectedRecords
    concepts: Concepts
    folder: Path
    work: Path
    n_merged: Counter[str] = field(default_factory=Counter)
    n_shared: int = 0
    lock: Lock = field(default_factory=Lock)
    """Held while rows are counted in the logs: tables are written side by side."""

    @property
    def n_concepts(self) -> int:
        """Number of concepts in the store."""
        return len(self.concepts.ids)

    def partitions(self, table: str, column: str) -> Iterator[pl.DataFrame]:
        """Yield a table by ranges of concepts, with their ``row``; reject unknown concepts.

        Args:
            table: Name of the table.
            column: Column with the ids of concepts.
        """
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
        """Add the row of the concept that a column names; drop rows of unknown concepts.

        Args:
            frame: Records of one kind.
            table: Table that they belong to.
            column: Column with the id of the concept.
            name: Column of its row, which takes the place of that.
        """
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
                rows.drop("partition").write_ipc(path)
                files[partition].append(path)
        for paths in files:
            if paths:
                yield pl.concat([pl.read_ipc(path) for path in paths])
                for path in paths:
                    path.unlink()

    def count(self, rows: Any) -> Ints:
        """Count rows per concept."""
        return np.bincount(np.asarray(rows), minlength=self.n_concepts)

    def write_index(self, table: str, hashes: Uint64s) -> None:
        """Write an index of hashes.

        Args:
            table: Name of the index.
            hashes: Hash of each row.
        """
        with TableWriter(self.folder, table) as writer:
            writer.write({"entry": make_index(hashes)})


def _ends(counts: Ints) -> Ends:
    """Return the end of each concept's rows from the number of rows per concept."""
    return np.cumsum(counts).astype(np.uint32)


def write_names(assembly: Assembly, rules: NameRules, main_languages: list[int]) -> Ends:
    """Write the names and their index by normalised key.

    Args:
        assembly: The build.
        rules: Rules for the texts of names.
        main_languages: Codes of the languages of preferred names, best first.
    """
    counts = np.zeros(assembly.n_concepts, np.int64)
    keys: list[Uint64s] = []
    partitions = _ordered_names(assembly, rules, main_languages)
    if rules.resolve_shared:
        partitions = _without_shared(assembly, partitions)
    with TableWriter(assembly.folder, "names") as writer:
        for frame in partitions:
            texts = text_array(frame["text"])
            keys.append(hash_names(texts))
            counts += assembly.count(frame["row"])
            writer.write({**_columns(frame, "language", "kind", "source"), "text": texts})
    assembly.write_index("names_index", np.concatenate(keys or [np.zeros(0, np.uint64)]))
    return _ends(counts)


def _ordered_names(
    assembly: Assembly, rules: NameRules, main_languages: list[int]
) -> Iterator[pl.DataFrame]:
    text = pl.col("text")
    if rules.lowercase:
        text = text.str.to_lowercase()
    if rules.strip_symbols:
        text = text.str.replace_all(SYMBOLS, " ").str.replace_all(r"\s+", " ").str.strip_chars()
    for frame in assembly.partitions("names", "concept"):
        ruled = frame.with_columns(text)
        empty = ruled["text"].str.strip_chars() == ""
        if empty.any():
            rejected = frame.filter(empty).select("file", "line", "text")
            for file, line, name in rejected.iter_rows():
                log, path = assembly.records.logs[file], assembly.records.files[file]
                log.reject("name is empty or only symbols", line, name, path=path)
            ruled = ruled.filter(~empty)
        ordered = order_names(ruled.drop("file", "line"), main_languages)
        assembly.n_merged["names"] += ruled.height - ordered.height
        yield ordered


def _without_shared(
    assembly: Assembly, partitions: Iterator[pl.DataFrame]
) -> Iterator[pl.DataFrame]:
    """Drop shared names; partitions are kept on disk until all names are known."""
    paths, rows, keys = [], [], []
    for k, frame in enumerate(partitions):
        rows.append(frame["row"].to_numpy())
        keys.append(hash_names(text_array(frame["text"])))
        paths.append(assembly.work / f"ordered-names-{k:06d}.arrow")
        frame.write_ipc(paths[-1])
    if not paths:
        return
    drop = shared_names(np.concatenate(rows), np.concatenate(keys))
    assembly.n_shared = int(drop.sum())
    start = 0
    for path, partition_rows in zip(paths, rows, strict=True):
        dropped = drop[start : start + len(partition_rows)]
        start += len(partition_rows)
        yield pl.read_ipc(path).filter(pl.Series(~dropped))
        path.unlink()


def write_grouped(
    assembly: Assembly, table: str, distinct: Sequence[str], columns: Sequence[str]
) -> Ends:
    """Write a table by concept.

    Args:
        assembly: The build.
        table: Name of the table.
        distinct: Columns by which the rows of a concept are merged if they are equal.
        columns: Columns to write.
    """
    counts = np.zeros(assembly.n_concepts, np.int64)
    with TableWriter(assembly.folder, table) as writer:
        for frame in assembly.partitions(table, "concept"):
            rows = frame.unique(["row", *distinct], keep="first", maintain_order=True)
            rows = rows.sort("row", maintain_order=True)
            assembly.n_merged[table] += frame.height - rows.height
            counts += assembly.count(rows["row"])
            writer.write(_columns(rows, *columns))
    return _ends(counts)


def write_ids(assembly: Assembly) -> Ends:
    """Write the additional ids, and the index of all ids by canonical spelling.

    Args:
        assembly: The build.
    """
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
    assembly.n_merged["ids"] += every.height - ids.height
    with TableWriter(assembly.folder, "ids") as writer:
        writer.write(_columns(ids, "id", "kind"))
    columns = canonical_ids(primary), canonical_ids(ids["id"])
    hashes = [hash_texts(text_array(column)) for column in columns]
    assembly.write_index("ids_index", np.concatenate(hashes))
    return _ends(assembly.count(ids["row"]))


def write_relations(assembly: Assembly) -> tuple[Ends, Ends]:
    """Write the relations grouped by head, and their rows grouped by tail.

    Args:
        assembly: The build.
    """
    outgoing = np.zeros(assembly.n_concepts, np.int64)
    tails: list[Uints] = []
    n_labels = [len(assembly.records.vocabularies[name]) for name in ("relation", "source")]
    with TableWriter(assembly.folder, "relations") as writer:
        for partition in assembly.partitions("relations", "head"):
            frame = assembly.resolve(partition, "relations", "tail", "target")
            columns = sort_rows(
                [frame[name].to_numpy() for name in ("row", "target", "relation", "source")],
                [assembly.n_concepts, assembly.n_concepts, *n_labels],
            )
            first = run_starts(*columns[:3])  # each relation once, under its first source
            head, tail, relation, source = (column[first] for column in columns)
            assembly.n_merged["relations"] += frame.height - len(head)
            outgoing += assembly.count(head)
            tails.append(tail)
            writer.write({"head": head, "relation": relation, "tail": tail, "source": source})
    tail = np.concatenate(tails or [np.zeros(0, np.uint32)])
    rows = np.arange(len(tail), dtype=np.uint32)
    _, by_tail = sort_rows([tail, rows], [assembly.n_concepts, len(rows)])
    with TableWriter(assembly.folder, "incoming") as writer:
        writer.write({"relation_row": by_tail})
    return _ends(outgoing), _ends(assembly.count(tail))


def _columns(frame: pl.DataFrame, *names: str) -> dict[str, Any]:
    return {"concept": frame["row"], **{name: frame[name] for name in names}}


MERGED_TABLES = ("names", "definitions", "types", "ids", "relations")
"""Tables of which equal rows are merged."""


def build_store(
    config: BuildConfig,
    out: str | Path,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> BuildReport:
    """Build a knowledge base from sources into the folder ``out``.

    Args:
        config: Sources and how they are merged.
        out: The folder; it may hold a store only if that is overwritten.
        overwrite: Replace the store in the folder.
        progress: Display of the progress; None: none.

    Raises:
        InputError: A source cannot be read, or has no concept.
        OutputError: The folder exists, or cannot be written.

    >>> config = BuildConfig(sources=(SourceConfig(path=Path("MRCONSO.RRF")),), languages=("en",))
    >>> build_store(config, "kb").counts["concepts"]
    """
    out = Path(out)
    progress = progress or Progress()
    _refuse_fork(out)
    stop = Event()
    with new_folder(out, overwrite=overwrite) as folder, ThreadPoolExecutor(1) as pool:
        try:
            if out.is_dir() and any(out.iterdir()) and not is_store(out):
                raise OutputError(
                    f"{out}: holds no knowledge base, so it is not overwritten; remove it or "
                    "choose another folder"
                )
            report = _build(config, folder, out, progress, pool, stop)
        except pa.ArrowException as error:
            raise OutputError(f"{out}: cannot be written ({error})") from error
        finally:
            stop.set()
            progress.finish()
            pool.shutdown(cancel_futures=True)
    return report


_BUILDERS: set[int] = set()
"""Processes that have built a store: this one, and those it was forked from."""


def _refuse_fork(out: Path) -> None:
    """Refuse to build in a forked process: it has the locks of polars, not its threads."""
    if _BUILDERS and os.getpid() not in _BUILDERS:
        raise OutputError(
            f"{out}: a process that was forked after its parent had built a store cannot build "
            "another; start it with the method spawn (multiprocessing.get_context('spawn'))"
        )
    _BUILDERS.add(os.getpid())


def _build(
    config: BuildConfig,
    folder: Path,
    out: Path,
    progress: Progress,
    pool: ThreadPoolExecutor,
    stop: Event,
) -> BuildReport:
    """Build a store in a new folder, which becomes ``out``; source files are hashed meanwhile."""
    work = folder / "work"
    work.mkdir()
    records, iris = CollectedRecords(work), Iris()
    sources: list[tuple[ReadLog, str]] = []
    hashes: dict[Path, Future[str]] = {}

    def start_hash(path: Path) -> None:
        if path not in hashes:
            hashes[path] = pool.submit(hash_file, path, stop)

    for source in map(resolve, config.sources):
        progress.start(f"reading {source.path.name}")
        log = ReadLog(source.path, progress.advance, start_hash, iris)
        sources.append((log, source.format))
        with closing(read_source(source, log)) as items:
            for item in items:
                records.add(item, log)
        records.flush()
    logs = [log for log, _ in sources]
    progress.start("numbering concepts")
    concepts = number_concepts(records)
    if config.merge != "none":
        concepts = merge_concepts(concepts, records, config.merge)
    concepts, dropped = _filter(concepts, records, config)
    if not len(concepts.ids):
        raise _no_concepts(logs, only_ids=bool(records.n_rows["ids"]))
    concepts = add_alternates(concepts, records)
    records.drop("concepts")
    assembly = Assembly(records, concepts, folder, work)
    languages = records.vocabularies["language"].labels
    preferred = config.languages or next((s.languages for s in config.sources if s.languages), ())
    codes = map(language_code, preferred or ("en",))
    main = [languages.index(code) for code in codes if code in languages]
    progress.start("writing tables")
    with ThreadPoolExecutor(1) as others:  # names take about as long as all others
        rest = others.submit(_write_rest, assembly)
        ends = {"names": write_names(assembly, config.names, main), **rest.result()}
    with TableWriter(folder, "concepts") as writer:
        writer.write({"id": concepts.ids, **{f"{table}_end": ends[table] for table in GROUPED}})
    progress.start("checking the hierarchy")
    warnings = (
        *iris.warnings(concepts.ids.filter(concepts.ids.str.contains("^https?://"))),
        *_unused_filters(config, assembly),
        *_warnings(assembly, concepts),
    )
    progress.start("hashing the sources")
    for future in hashes.values():
        future.result()
    progress.finish()
    work.rmdir()
    report = BuildReport(
        store=str(out),
        counts={
            "concepts": assembly.n_concepts,
            **{table: Table(folder, table).n_rows for table in MERGED_TABLES},
        },
        merged={
            "concepts": concepts.n_merged,
            **{table: assembly.n_merged[table] for table in MERGED_TABLES},
        },
        dropped={
            **dropped,
            "names that several concepts share": assembly.n_shared,
        },
        sources=tuple(
            SourceReport(
                path=str(log.path),
                format=form,
                files=tuple(
                    {"path": str(f), "bytes": f.stat().st_size, "sha256": hashes[f].result()}
                    for f in log.files
                ),
                n_read=log.n_read,
                n_rejected=log.rejected.counts.total(),
                filtered=dict(log.filtered.most_common()),
                rejected=log.rejected.to_json(),
                doubtful=log.doubtful.to_json(),
                notes=tuple(log.notes),
            )
            for log, form in sources
        ),
        warnings=tuple(warnings),
        unmerged=tuple(concepts.unmerged.rows()),
        merges=tuple(concepts.merged.rows()),
        seconds=dict(progress.seconds),
    )
    _write_manifest(folder, config, report, records, concepts, iris)
    return report


def _filter(
    concepts: Concepts, records: CollectedRecords, config: BuildConfig
) -> tuple[Concepts, dict[str, int]]:
    """Drop concepts of other sources and types, and count them."""
    dropped = {"concepts of other types": 0}
    if config.concepts == FIRST_SOURCE:
        kept = filter_first_source(concepts, records)
        dropped["concepts of other sources"] = len(concepts.ids) - len(kept.ids)
        concepts = kept
    if config.types:
        kept = filter_types(concepts, records, config.types)
        dropped["concepts of other types"] = len(concepts.ids) - len(kept.ids)
        concepts = kept
    return concepts, dropped


def _write_rest(assembly: Assembly) -> dict[str, Ends]:
    """Write all tables but those of concepts and names."""
    text = ("text", "language", "source")
    ends = {
        "definitions": write_grouped(assembly, "definitions", ("language", "text"), text),
        "types": write_grouped(assembly, "types", ("type",), ("type",)),
        "ids": write_ids(assembly),
    }
    ends["relations"], ends["incoming"] = write_relations(assembly)
    return ends


def _write_manifest(
    folder: Path,
    config: BuildConfig,
    report: BuildReport,
    records: CollectedRecords,
    concepts: Concepts,
    iris: Iris,
) -> None:
    """Write the manifest last: a folder without one is no store."""
    options = asdict(config)
    sources = options.pop("sources")
    for source in sources:
        for name in ("path", "format", "same_as"):
            del source[name]
    labels = {name: encoder.labels for name, encoder in records.vocabularies.items()}
    n_names = np.bincount(
        Table(folder, "names").numbers("language").all(), minlength=len(labels["language"])
    )
    manifest = {
        "config": {**options, "sources": sources},
        **{key: value for key, value in report.to_json().items() if key != "store"},
        "prefixes": {prefix: iris.namespace_of(prefix) for prefix in _prefixes(concepts.ids)},
        "former_prefixes": {
            old: new
            for old, new in iris.former.items()
            if new != f"{old}:" and concepts.ids.str.starts_with(new).any()
        },
        "last_numbers": last_numbers(_highest(concepts.ids)),
        "n_names_by_language": dict(zip(labels["language"], n_names.tolist(), strict=True)),
        "vocabularies": {
            "languages": labels["language"],
            "sources": labels["source"],
            "relations": labels["relation"],
            "types": [[code, *records.labels.get(code, ("", ""))] for code in labels["type"]],
        },
        "files": describe_files(folder),
    }
    STORE.write(folder, manifest)


def _prefixes(ids: pl.Series) -> list[str]:
    """Return the prefixes of ids; an empty one stands for bare ids, and for IRIs."""
    return sorted(ids.str.extract("^([^:]*):(?:[^/]|/[^/])").fill_null("").unique())


def _highest(ids: pl.Series) -> pl.Series:
    """Return the id with the highest number of every prefix and its letters."""
    parts = ids.str.extract_groups(r"^([^:]*:)?([A-Za-z]*)").struct.rename_fields(
        ["prefix", "letters"]
    )
    number = ids.str.extract(r"(\d{1,15})$").cast(pl.Int64).fill_null(0)
    frame = pl.DataFrame({"id": ids, "part": parts, "number": number})
    return frame.group_by("part").agg(pl.col("id").sort_by("number").last())["id"].sort()


def _no_concepts(logs: Sequence[ReadLog], *, only_ids: bool) -> InputError:
    """Return the error for a build without concepts, with the most frequent reasons."""
    reasons: Counter[str] = Counter()
    for log in logs:
        reasons.update({f"rejected: {why}": n for why, n in log.rejected.counts.items()})
        reasons.update({f"filtered: {why}": n for why, n in log.filtered.items()})
    top = [f"{n:,} {reason}" for reason, n in reasons.most_common(2)]
    n_read = sum(log.n_read for log in logs)
    return InputError(
        f"contains no concept ({'; '.join([f'{n_read:,} rows were read', *top])})",
        path=", ".join(str(log.path) for log in logs),
        remedy="build it together with the vocabulary of its concepts"
        if only_ids
        else "check the format and the filters",
    )


def _unused_filters(config: BuildConfig, assembly: Assembly) -> list[str]:
    """Warn of filter values that match nothing in the sources; most are misspelt."""
    vocabularies = assembly.records.vocabularies
    warnings = []
    for option, vocabulary in (
        ("languages", "language"),
        ("vocabularies", "source"),
        ("keep_concepts_of", "source"),
        ("relations", "relation"),
    ):
        labels = vocabularies[vocabulary].labels
        values = {value for source in config.sources for value in getattr(source, option)}
        if option == "languages":
            values = {language_code(value) for value in values}
        for value in sorted(values - set(labels)):
            hint = nearest(value, labels) if labels else "nothing was kept"
            warnings.append(f"{option}: nothing in the sources is called {value!r}; {hint}")
    if not assembly.records.n_rows["names"]:
        warnings.append("no concept has a name")
    return warnings


def _warnings(assembly: Assembly, concepts: Concepts) -> list[str]:
    warnings = []
    names = assembly.records.vocabularies["relation"].labels
    if IS_A in names:
        table = Table(assembly.folder, "relations")
        is_a = table.numbers("relation").all() == names.index(IS_A)
        heads, tails = (table.numbers(column).all()[is_a] for column in ("head", "tail"))
        n, cycle = Hierarchy(heads, tails, assembly.n_concepts).find_cycle()
        if cycle:
            path = " -> ".join(concepts.ids[row] for row in cycle[:8])
            warnings.append(
                f"is-a has cycles: {n:,} concepts lie on or between them, such as {path}; "
                "ancestors are still found, each once; correct the source if it is yours"
            )
    if concepts.n_ambiguous:
        warnings.append(
            f"{concepts.n_ambiguous:,} links were ambiguous (within one source, or not one to one) "
            "and not used to merge"
        )
    near = concepts.unmerged["reason"].is_in([SEVERAL, OTHER_NAMES]).sum()
    if near:
        warnings.append(
            f"{near:,} cross-references were not used to merge: one of several to a vocabulary, or "
            "to a concept of other names (--merge xrefs-all uses them, --unmerged lists them)"
        )
    for reason in BY_NAME:
        apart = concepts.unmerged.filter(pl.col("reason") == reason)
        if apart.height:
            first, second, _, name = apart.row(0)
            warnings.append(
                f"pairs with an equal name that were not merged: {apart.height:,} ({reason}), such "
                f"as {name!r} of {first} and {second}; --unmerged lists them"
            )
    return warnings


def build_starter(out: str | Path, *, overwrite: bool = False) -> BuildReport:
    """Build the starter knowledge base that ships with the package.

    Args:
        out: The folder to write.
        overwrite: Replace an earlier result.

    >>> build_starter("kb").counts["concepts"]
    896
    """
    config = BuildConfig(sources=(SourceConfig(path=Path(STARTER)),))
    return build_store(config, out, overwrite=overwrite)
