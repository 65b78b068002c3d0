"""Ids of retired concepts, led to the concepts of the store that take their place."""

from __future__ import annotations

import polars as pl

from biograft.kb.collector import CollectedRecords
from biograft.kb.concepts import DROPPED, Concepts, canonical_ids

MAX_STEPS = 20
"""Most steps to a successor that is not retired itself."""

_SCHEMA = {"row": pl.UInt32, "id": pl.String, "kind": pl.UInt8}


def retired_ids(records: CollectedRecords, concepts: Concepts) -> pl.DataFrame:
    """Return ``row`` of a concept, ``id`` of a retired one that it stands for, and ``kind``.

    A successor that is retired is followed to its own successors. If any step of the way is to be
    considered only, so is its end. Ids that lead to no concept are counted as filtered.
    """
    frames = list(records.frames("retired"))
    records.drop("retired")
    if not frames:
        return pl.DataFrame(schema=_SCHEMA)
    named = pl.concat(frames)
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
