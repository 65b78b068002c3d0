"""Which concepts of annotated text are entities, and in which row of the table each is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from biograft.corpus.shards import SHARDS
from biograft.errors import ConfigError

FREQUENCIES = "frequencies.parquet"


def read_entities(shards: Path, min_count: int) -> pa.Table:
    """Give the concepts found at least so often: columns ``id`` and ``count``, the most first."""
    counted = _read_frequencies(shards)
    kept = counted.filter(pc.greater_equal(counted["count"], min_count))
    return kept.sort_by([("count", "descending"), ("id", "ascending")])


def count_entities(shards: Path, ids: Sequence[str]) -> pa.Table:
    """Give entities that are fixed already, in their order, and how often each was found."""
    if len(set(ids)) < len(ids):
        raise ConfigError("entities: an id occurs twice; a row of the table is for one entity")
    counted = _read_frequencies(shards)
    places = pc.index_in(pa.array(ids, pa.string()), counted["id"].combine_chunks())
    return pa.table({"id": ids, "count": pc.fill_null(counted["count"].take(places), 0)})


def _read_frequencies(shards: Path) -> pa.Table:
    path = shards / FREQUENCIES
    try:
        table = pq.read_table(path, columns=["concept", "count"])
    except (OSError, pa.ArrowException) as error:
        raise SHARDS.damaged(path, error) from error
    return table.rename_columns(["id", "count"])
