"""Assemble the table of names: grouped by concept, without repeats, under the wanted rules."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from biograft.kb.config import NameRules
from biograft.kb.layout import NAME_KINDS
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
    rank = _rank(frame, main_languages)
    places = np.arange(frame.height, dtype=np.uint64)
    packed = (frame["row"].to_numpy().astype(np.uint64) << np.uint64(32)) | (
        rank.astype(np.uint64) << np.uint64(30)
    )
    order = np.argsort(packed | places, kind="stable") if frame.height < 1 << 30 else None
    assert order is not None, "partitions are far smaller"
    frame = frame[order.astype(np.uint32)]
    # the hash only parts names within one concept and language: 2^-64 for each such pair
    keyed = frame.with_columns(digest=pl.col("text").hash())
    kept = keyed.unique(["row", "language", "digest"], keep="first", maintain_order=True)
    return kept.drop("digest")


def _rank(frame: pl.DataFrame, main_languages: list[int]) -> npt.NDArray[np.uint8]:
    """0: preferred in the main language, 1: preferred in another, 2: all else."""
    preferred = frame["kind"].to_numpy() == NAME_KINDS.index(NameKind.PREFERRED)
    language = frame["language"].to_numpy()
    first = language == main_languages[0] if main_languages else np.zeros(len(language), bool)
    return np.where(preferred, np.where(first, 0, 1), np.where(first, 2, 3)).astype(np.uint8)


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


def text_array(frame: pl.DataFrame) -> pa.Array:
    """See the texts of a frame as one Arrow array."""
    array = frame["text"].rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    return array if array.type == pa.large_string() else array.cast(pa.large_string())
