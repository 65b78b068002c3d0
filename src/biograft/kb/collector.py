"""Collect the records of source readers into tables, which spill to disk beyond a memory budget.

Languages, sources, types and relations are encoded as integers here; ids stay text until all
concepts are known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import polars as pl
import pyarrow as pa

from biograft.errors import FormatError
from biograft.kb.names import (
    CONTROL,
    HIDDEN,
    NOT_IN_LINES,
    clean_definition,
    clean_name,
    fold_lines,
    is_invisible,
)
from biograft.kb.records import (
    RECORD_TYPES,
    RETIRED,
    DefinitionRecord,
    IdRecord,
    NameRecord,
    Record,
    TypeRecord,
)
from biograft.kb.sources import Block, Item, ReadLog
from biograft.kb.tables import ID_KINDS, NAME_KINDS

FLUSH_RECORDS = 100_000
MEMORY_BUDGET = 1 << 30
"""Bytes of tables kept in memory; later tables go to disk."""

RETIRED_KINDS = [ID_KINDS.index(kind) for kind in RETIRED]

_CODES = {
    "language": pl.UInt16,
    "source": pl.UInt16,
    "relation": pl.UInt16,
    "type": pl.UInt32,
    "kind": pl.UInt8,
}
"""Fields that are encoded as integers."""
_COLUMNS: dict[str, dict[str, Any]] = {
    record.table: {
        name: _CODES.get(name, pl.String)
        for name in record.__slots__
        if name not in ("label", "tree", "line")
    }
    for record in RECORD_TYPES
}
_COLUMNS["retired"] = _COLUMNS[IdRecord.table]
_PLACE = {"file": pl.UInt16, "line": pl.UInt32}


class LabelEncoder:
    """Encodes labels as integers, in order of first appearance.

    Args:
        field: What a label is called in errors.
        labels: Labels that have the first codes.
        limit: Largest number of labels.
    """

    def __init__(self, field: str, labels: tuple[str, ...] = (), limit: int = 1 << 16) -> None:
        self.field, self.limit = field, limit
        self._codes = {label: code for code, label in enumerate(labels)}

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def labels(self) -> list[str]:
        """All labels by code."""
        return list(self._codes)

    def code(self, label: str) -> int:
        """Return the code of a label, a new one if it is new."""
        return self._codes.setdefault(label, len(self._codes))

    def encode(self, series: pl.Series, dtype: Any, path: Path) -> pl.Series:
        """Encode a column of labels.

        Args:
            series: A column.
            dtype: Type of the integers.
            path: File it is from, for errors.
        """
        distinct = series.unique(maintain_order=True).to_list()
        codes = [self.code(fold_lines(label)) for label in distinct]
        if len(self) > self.limit:
            raise FormatError(
                f"gives over {self.limit:,} different {self.field}",
                path=path,
                text=distinct[-1],
                remedy="check the format and the columns",
            )
        if len(distinct) == 1:
            return pl.Series(series.name, [codes[0]], dtype=dtype).new_from_index(0, len(series))
        return series.replace_strict(distinct, codes, return_dtype=dtype)


_CONCEPTS = frozenset({"concept", "id", "head", "tail"})
_IDENTIFIERS = _CONCEPTS | {"relation", "type"}
_SEEN = r"[^\p{C}\p{Z}\p{M}\x{115f}\x{1160}\x{2800}\x{3164}\x{ffa0}]"
"""A character that is certainly visible; texts without any are looked at one by one."""
_UNCLEAN, _UNCLEAN_LINES = f"{CONTROL}|{HIDDEN}", f"{NOT_IN_LINES}|{HIDDEN}"


class CollectedRecords:
    """The records read so far, as one table per kind of record.

    Args:
        work: Folder of working files.
        memory_budget: Bytes of records that are kept in memory.
    """

    def __init__(self, work: Path, memory_budget: int = MEMORY_BUDGET) -> None:
        self.files: list[Path] = []
        self.logs: list[ReadLog] = []
        self.vocabularies = {
            "language": LabelEncoder("languages"),
            "source": LabelEncoder("sources"),
            "relation": LabelEncoder("relations"),
            "type": LabelEncoder("types", limit=1 << 32),
        }
        self.labels: dict[str, tuple[str, str]] = {}
        self.n_rows = dict.fromkeys(_COLUMNS, 0)
        self._kinds = {
            "names": LabelEncoder("kinds", tuple(map(str, NAME_KINDS)), len(NAME_KINDS)),
            "ids": LabelEncoder("kinds", tuple(map(str, ID_KINDS)), len(ID_KINDS)),
        }
        self._frames: dict[str, list[pl.DataFrame | Path]] = {name: [] for name in _COLUMNS}
        self._pending: dict[type[Record], list[Record]] = {kind: [] for kind in RECORD_TYPES}
        self._work, self._left = work, memory_budget
        self._path, self._file = Path(), 0
        self._log = ReadLog(self._path)

    def add(self, item: Item, log: ReadLog) -> None:
        """Add a record or a block of records, read from the file that was opened last.

        Args:
            item: A record, or a block of records.
            log: Log of its source.
        """
        path = log.files[-1] if log.files else log.path
        if path is not self._path or log is not self._log:
            self.flush()
            self._path, self._log, self._file = path, log, len(self.files)
            self.files.append(path)
            self.logs.append(log)
        if isinstance(item, Block):
            self._flush(item.record)
            self._add_frame(item.record.table, item.frame)
            return
        pending = self._pending[type(item)]
        pending.append(item)
        if len(pending) >= FLUSH_RECORDS:
            self._flush(type(item))

    def flush(self) -> None:
        """Move all single records into the tables."""
        for record in RECORD_TYPES:
            self._flush(record)

    def frames(self, table: str) -> Iterator[pl.DataFrame]:
        """Yield the frames of a table in the order in which they were added; at least one."""
        for frame in self._frames[table] or [pl.DataFrame(schema=_COLUMNS[table] | _PLACE)]:
            yield frame if isinstance(frame, pl.DataFrame) else pl.read_ipc(frame)

    def drop(self, table: str) -> None:
        """Delete a table that is no longer needed."""
        for frame in self._frames[table]:
            if isinstance(frame, Path):
                frame.unlink()
        self._frames[table] = []

    def _flush(self, record: type[Record]) -> None:
        pending = self._pending[record]
        if pending:
            self._pending[record] = []
            names = record.__slots__
            columns = {name: [getattr(item, name) for item in pending] for name in names}
            for name in names:
                if name != "line" and not all(
                    issubclass(t, str) for t in set(map(type, columns[name]))
                ):
                    self._refuse_no_text(pending, name)
            schema = {name: pl.UInt32 if name == "line" else pl.String for name in names}
            self._add_frame(record.table, pl.DataFrame(columns, schema))

    def _refuse_no_text(self, pending: list[Record], name: str) -> NoReturn:
        """Name the first record with a value that is no text."""
        record = next(item for item in pending if not isinstance(getattr(item, name), str))
        raise FormatError(
            f"its reader gives {getattr(record, name)!r} as {name} of a {type(record).__name__}, "
            "expected a text",
            path=self._path,
            line=record.line or None,
            remedy="let the reader of this format convert it, or reject the row",
        )

    def _add_frame(self, table: str, frame: pl.DataFrame) -> None:
        frame = self._clean(self._with_ids(frame), table)
        if not frame.height:
            return
        if table == TypeRecord.table:
            labels = frame.select("type", "label", "tree").unique(maintain_order=True)
            for code, label, tree in labels.rows():
                if code not in self.labels or not self.labels[code][0]:
                    self.labels[code] = (label, tree)
        columns = _COLUMNS[table]
        if "source" in columns and (frame["source"] == "").any():
            frame = frame.with_columns(pl.col("source").replace({"": self._path.name}))
        encoded = []
        for name, dtype in columns.items():
            series = frame[name]
            if dtype != pl.String:
                codes = self._kinds[table] if name == "kind" else self.vocabularies[name]
                series = codes.encode(series, dtype, self._path)
            encoded.append(series)
        file = pl.Series("file", [self._file], dtype=pl.UInt16).new_from_index(0, frame.height)
        line = frame["line"].cast(pl.UInt32)
        rows = pl.DataFrame([*encoded, file, line])
        if table != IdRecord.table:
            self._store(table, rows)
            return
        # ids of retired concepts wait apart: what they lead to may be retired, too
        retired = rows["kind"].is_in(RETIRED_KINDS)
        self._store(table, rows.filter(~retired))
        self._store("retired", rows.filter(retired))

    def _with_ids(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Put ids in place of IRIs."""
        for name in _CONCEPTS.intersection(frame.columns):
            is_iri = frame[name].str.starts_with("http")
            if is_iri.any():
                iris = frame[name].filter(is_iri).unique()
                ids = [self._log.iris.id_of(iri) for iri in iris]
                frame = frame.with_columns(pl.col(name).replace(iris, ids))
        return frame

    def _clean(self, frame: pl.DataFrame, table: str) -> pl.DataFrame:
        """Return the rows as they can be stored, shown and exported; report all that changes."""
        log = self._log
        for name in _IDENTIFIERS.intersection(frame.columns):
            # where ids are written, a line break would begin a row
            broken = frame[name].str.contains(CONTROL)
            if broken.any():
                for line, text in frame.filter(broken).select("line", name).rows():
                    reason = f"{name}: holds a control character"
                    log.reject(reason, line, text, path=self._path)
                frame = frame.filter(~broken)
            frame = self._seen(frame, name, name)
            frame = self._cleaned(frame, name, name, HIDDEN, clean_name)
        if table == NameRecord.table:
            frame = self._seen(frame, "text", "name")
            frame = self._cleaned(frame, "text", "name", _UNCLEAN, clean_name)
        elif table == DefinitionRecord.table:
            frame = self._seen(frame, "text", "definition")
            frame = self._cleaned(frame, "text", "definition", _UNCLEAN_LINES, clean_definition)
        elif table == TypeRecord.table:
            frame = self._cleaned(frame, "label", "label", _UNCLEAN, clean_name)
        return frame

    def _cleaned(
        self, frame: pl.DataFrame, column: str, what: str, pattern: str, clean: Callable[[str], str]
    ) -> pl.DataFrame:
        """Clean the texts of a column that a pattern occurs in, and count them as doubtful."""
        faulty = frame[column].str.contains(pattern)
        if not faulty.any():
            return frame
        reason = f"{what}: held line ends, control or hidden characters"
        for line, text in frame.filter(faulty).select("line", column).rows():
            self._log.doubt(reason, line, text, path=self._path)
        cleaned = frame[column].filter(faulty).map_elements(clean, pl.String)
        return frame.with_columns(frame[column].scatter(faulty.arg_true(), cleaned))

    def _seen(self, frame: pl.DataFrame, column: str, what: str) -> pl.DataFrame:
        """Reject rows with an invisible text."""
        unsure = frame[column].filter(~frame[column].str.contains(_SEEN)).unique()
        unseen = [text for text in unsure if is_invisible(text)]
        if unseen:
            is_unseen = frame[column].is_in(unseen)
            for line, text in frame.filter(is_unseen).select("line", column).rows():
                reason = f"{what}: has no visible character"
                self._log.reject(reason, line, ascii(text), path=self._path)
            frame = frame.filter(~is_unseen)
        return frame

    def _store(self, table: str, frame: pl.DataFrame) -> None:
        if not frame.height:
            return
        self.n_rows[table] += frame.height
        size = int(frame.estimated_size())
        if size <= self._left:
            self._left -= size
            self._frames[table].append(frame)
            return
        path = self._work / f"{table}-{len(self._frames[table]):06d}.arrow"
        frame.write_ipc(path)
        self._frames[table].append(path)


def text_array(texts: pl.Series) -> pa.Array:
    """Return a column of texts as one Arrow array.

    Args:
        texts: The texts.
    """
    array = texts.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    return array if array.type == pa.large_string() else array.cast(pa.large_string())
