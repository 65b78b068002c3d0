"""How often each concept was found in a corpus: the Q(e) of SMedBERT's sampling, and a check."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from biograft.corpus.shards import SHARDS
from biograft.runs import new_file

FREQUENCIES = "frequencies.parquet"


def count_concepts(shards: Iterable[Path]) -> pa.Table:
    """Count the spans of each concept: columns ``concept`` and ``count``, the most first."""
    total = pa.table({"concept": pa.array([], pa.string()), "count": pa.array([], pa.int64())})
    for path in shards:
        with pq.ParquetFile(path) as file:
            column = file.read(columns=["mentions.list.element.concept"])["mentions"]
        spans = pc.struct_field(column.combine_chunks().flatten(), "concept")
        counted = pc.value_counts(spans)
        part = pa.table({"concept": counted.field(0), "count": counted.field(1)})
        both = pa.concat_tables([total, part])
        total = both.group_by("concept").aggregate([("count", "sum")])
        total = total.rename_columns(["concept", "count"])
    return total.sort_by([("count", "descending"), ("concept", "ascending")])


def write_frequencies(folder: Path, shards: Iterable[Path]) -> pa.Table:
    """Count and write the frequencies beside the shards."""
    table = count_concepts(shards)
    with new_file(folder / FREQUENCIES, overwrite=True) as file:
        pq.write_table(table, file, compression="zstd")
    return table


def read_frequencies(folder: str | Path) -> dict[str, int]:
    """Read how often each concept was found."""
    path = Path(folder) / FREQUENCIES
    try:
        table = pq.read_table(path)
        return dict(zip(table["concept"].to_pylist(), table["count"].to_pylist(), strict=True))
    except (OSError, pa.ArrowException, KeyError) as error:
        raise SHARDS.damaged(path, error) from error
