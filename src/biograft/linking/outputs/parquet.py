"""Parquet: one row a finding; types, tied concepts and ids are lists."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from biograft.artifacts import new_file
from biograft.linking.outputs.findings import COLUMNS, finding_rows
from biograft.linking.outputs.output import Documents, Output, OutputRun, storable

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = 1 << 14
"""Rows of a group, which are kept in memory until it is written."""


def write(documents: Documents, run: OutputRun, path: Path, overwrite: bool) -> None:
    """Write the findings, a group of rows at a time."""
    import pyarrow.parquet as pq

    schema = _schema()
    waiting: list[dict[str, Any]] = []
    with new_file(path, overwrite=overwrite) as file, pq.ParquetWriter(file, schema) as writer:
        for rows in finding_rows(documents, run):
            waiting += rows
            if len(waiting) >= _ROWS:
                writer.write_table(_table(waiting, schema))
                waiting = []
        writer.write_table(_table(waiting, schema))


def _schema() -> pa.Schema:
    import pyarrow as pa

    types = {
        str: pa.string(),
        int: pa.int64(),
        float: pa.float64(),
        bool: pa.bool_(),
        list: pa.list_(pa.string()),
    }
    return pa.schema([(name, types[kind]) for name, kind in COLUMNS.items()])


def _table(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    import pyarrow as pa

    columns = {
        name: pa.array([storable(row[name]) for row in rows], schema.field(name).type)
        for name in schema.names
    }
    return pa.table(columns, schema=schema)


OUTPUT = Output(write=write, needs="file", endings=(".parquet",))
