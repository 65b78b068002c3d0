"""Assemble the table of names: grouped by concept, without repeats, under the wanted rules."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from biograft.kb.config import NameRules
from biograft.kb.layout import NAME_KINDS
from biograft.kb.packing import first_of_runs, sort_rows
from biograft.records import NameKind

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
