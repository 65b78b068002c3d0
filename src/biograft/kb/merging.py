"""Merging the concepts of several sources by ids and cross-references."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from biograft.kb.collector import CollectedRecords
from biograft.kb.concepts import Concepts, canonical_ids, renumber
from biograft.kb.records import IdKind, NameKind
from biograft.kb.tables import ID_KINDS, NAME_KINDS

MANY = "not one to one between two sources"
CHAIN = "would join two concepts of one source"
SEVERAL = "one of several references to a vocabulary"
OTHER_NAMES = "the preferred name of one is no name of the other"

_ADDITIONAL = {
    "row": pl.UInt32, "key": pl.String, "kind": pl.UInt8, "vocabulary": pl.String,
}  # fmt: skip
_NAMES = {
    "row": pl.UInt32, "language": pl.UInt16, "form": pl.String, "preferred": pl.Boolean,
}  # fmt: skip


def merge_concepts(concepts: Concepts, records: CollectedRecords, by: str) -> Concepts:
    """Merge concepts of different sources that share ids (``ids``) or cross-references (``xrefs``).

    Concepts of one source are never merged: links that are not one to one between their two
    sources, and groups with two concepts of one source, are counted as ambiguous and not used.
    Neither are cross-references that may only mean something near: one of several to the same
    vocabulary, or to a concept whose names are others; ``xrefs-all`` uses those.
    """
    if not len(concepts.ids):
        return concepts
    links = _links(concepts, records, by)
    judged = links.with_columns(reason=pl.when(_one_to_one()).then(None).otherwise(pl.lit(MANY)))
    if by == "xrefs":
        judged = _judge_xrefs(judged, concepts, records)
    certain = judged.filter(pl.col("reason").is_null())
    n = len(concepts.ids)
    leaders = _components(n, certain["a"].to_numpy(), certain["b"].to_numpy())
    files = _files_of(concepts, records)
    clash = (
        files.with_columns(leader=pl.Series(leaders).gather(files["row"]))
        .group_by("leader", "source")
        .len()
        .filter(pl.col("len") > 1)["leader"]
        .unique()
    )
    split = np.isin(leaders, clash.to_numpy())
    judged = judged.with_columns(
        reason=pl.when(pl.col("reason").is_null() & pl.Series(split).gather(judged["a"]))
        .then(pl.lit(CHAIN))
        .otherwise("reason")
    )
    leaders[split] = np.arange(n, dtype=np.uint32)[split]
    merged = renumber(concepts, leaders)
    merged.n_merged += n - len(merged.ids)
    merged.n_ambiguous = judged.filter(pl.col("reason") == MANY).height + len(clash)
    merged.unmerged = judged.filter(pl.col("reason").is_not_null()).select(
        first=concepts.ids.gather(judged.filter(pl.col("reason").is_not_null())["a"]),
        second=concepts.ids.gather(judged.filter(pl.col("reason").is_not_null())["b"]),
        reason="reason",
    )
    return merged


def _links(concepts: Concepts, records: CollectedRecords, by: str) -> pl.DataFrame:
    """Return pairs of rows to merge: ``a`` of source ``file_a``, ``b`` of source ``file_b``."""
    kinds = [ID_KINDS.index(IdKind.ALTERNATE)]
    if by != "ids":
        kinds.append(ID_KINDS.index(IdKind.XREF))
    primary = concepts.by_id.select("row", "key")
    additional = pl.concat(
        [
            pl.DataFrame(
                {
                    "row": concepts.rows_of(frame["concept"]),
                    "key": canonical_ids(frame["id"]),
                    "kind": frame["kind"],
                    "vocabulary": frame["id"].str.extract(r"^([^:]+):"),
                }
            )
            for frame in records.frames("ids")
        ]
        or [pl.DataFrame(schema=_ADDITIONAL)]
    ).filter(pl.col("kind").is_in(kinds) & pl.col("row").is_not_null())
    # a shared third-party xref proves nothing; a shared alternate id does
    alternates = additional.filter(pl.col("kind") == kinds[0]).select("row", "key")
    targets = pl.concat([primary, alternates])
    # several references of one concept to one vocabulary cannot all mean the same
    of_several = pl.col("key").n_unique().over("row", "vocabulary", "kind") > 1
    additional = additional.with_columns(
        is_xref=pl.col("kind") != kinds[0],
        of_several=pl.col("vocabulary").is_not_null() & of_several,
    )
    pairs = additional.join(targets, on="key", suffix="_b")
    files = _files_of(concepts, records).group_by("row").agg(pl.col("source").min())
    return (
        pairs.select(
            "is_xref",
            "of_several",
            a_refers=pl.col("row") < pl.col("row_b"),
            a=pl.min_horizontal("row", "row_b"),
            b=pl.max_horizontal("row", "row_b"),
        )
        .filter(pl.col("a") != pl.col("b"))
        .group_by("a", "b", maintain_order=True)
        .agg(
            pl.col("is_xref").all(),
            pl.col("of_several").any(),
            a_refers=pl.col("a_refers").any(),
            b_refers=pl.col("a_refers").not_().any(),
        )
        .join(files.rename({"row": "a", "source": "file_a"}), on="a", maintain_order="left")
        .join(files.rename({"row": "b", "source": "file_b"}), on="b", maintain_order="left")
    )


def _one_to_one() -> pl.Expr:
    """Whether the ends of a link have no other partner in the other's source."""
    return (
        (pl.col("b").n_unique().over("a", "file_b") == 1)
        & (pl.col("a").n_unique().over("b", "file_a") == 1)
        & (pl.col("file_a") != pl.col("file_b"))
    )


def _judge_xrefs(
    links: pl.DataFrame, concepts: Concepts, records: CollectedRecords
) -> pl.DataFrame:
    """Give a reason not to merge to links by cross-references alone that mean something near."""
    compared = _compare_names(links, concepts, records)
    doubtful = pl.col("reason").is_null() & pl.col("is_xref")
    return compared.with_columns(
        reason=pl.when(doubtful & pl.col("of_several"))
        .then(pl.lit(SEVERAL))
        .when(doubtful & pl.col("differ"))
        .then(pl.lit(OTHER_NAMES))
        .otherwise("reason")
    )


def _compare_names(
    links: pl.DataFrame, concepts: Concepts, records: CollectedRecords
) -> pl.DataFrame:
    """Say of links whether the names of both ends ``differ``.

    They do if both have names in one language, and in none is the preferred name of the concept
    that refers, in any word order and number, a name of the one that it refers to.
    """
    names = _normal_names(pl.concat([links["a"], links["b"]]).unique(), concepts, records)
    preferred = names.filter("preferred")
    pairs = links.select("a", "b")
    first = pairs.join(preferred, left_on="a", right_on="row")
    second = pairs.join(preferred, left_on="b", right_on="row")
    comparable = first.join(second, on=["a", "b", "language"], how="semi").select("a", "b")
    first = first.join(links.filter("a_refers"), on=["a", "b"], how="semi")
    second = second.join(links.filter("b_refers"), on=["a", "b"], how="semi")
    of_other = names.select("row", "language", "form").unique()
    alike = pl.concat(
        [
            first.join(
                of_other, left_on=["b", "language", "form"],
                right_on=["row", "language", "form"], how="semi",
            ),
            second.join(
                of_other, left_on=["a", "language", "form"],
                right_on=["row", "language", "form"], how="semi",
            ),
        ]
    ).select("a", "b")  # fmt: skip
    differ = comparable.unique().join(alike, on=["a", "b"], how="anti")
    return links.join(
        differ.with_columns(differ=pl.lit(True)), on=["a", "b"], how="left", maintain_order="left"
    ).with_columns(pl.col("differ").fill_null(False))


def _normal_names(rows: pl.Series, concepts: Concepts, records: CollectedRecords) -> pl.DataFrame:
    """Return the names of rows: language, normal form, whether preferred in the language."""
    parts = [
        pl.DataFrame(
            {
                "row": concepts.rows_of(frame["concept"]),
                "text": frame["text"],
                "language": frame["language"],
                "other": frame["kind"] != NAME_KINDS.index(NameKind.PREFERRED),
            }
        ).filter(pl.col("row").is_in(rows.implode()))
        for frame in records.frames("names")
    ]
    if not parts:
        return pl.DataFrame(schema=_NAMES)
    words = (
        pl.col("text")
        .str.to_lowercase()
        .str.replace_all(r"['’]s\b", "")
        .str.replace_all(r"[^\p{L}\p{N}]+", " ")
        .str.strip_chars()
        .str.split(" ")
        .list.eval(pl.element().str.replace(r"(?:es|s)$", ""))
        .list.sort()
        .list.join(" ")
    )
    return pl.concat(parts).select(
        "row",
        "language",
        form=words,
        # of a language without a preferred name the first one
        preferred=~pl.col("other")
        | (pl.col("other").all() & (pl.int_range(pl.len()) == 0)).over("row", "language"),
    )


def _files_of(concepts: Concepts, records: CollectedRecords) -> pl.DataFrame:
    """Return which sources contain which row, each pair once."""
    source_of_file = [records.logs.index(log) for log in records.logs]
    parts = []
    for table in ("concepts", "names"):
        for frame in records.frames(table):
            pairs = pl.DataFrame(
                {"row": concepts.rows_of(frame["concept"]), "source": frame["file"]}
            )
            parts.append(pairs.unique(maintain_order=True))
    return (
        pl.concat(parts)
        .with_columns(
            pl.col("source").replace_strict(
                list(range(len(source_of_file))), source_of_file, return_dtype=pl.UInt16
            )
        )
        .unique(maintain_order=True)
    )


def _components(
    n: int, a: npt.NDArray[np.uint32], b: npt.NDArray[np.uint32]
) -> npt.NDArray[np.uint32]:
    """Return the lowest node of each node's connected component (label propagation)."""
    leaders = np.arange(n, dtype=np.uint32)
    while True:
        lowest = np.minimum(leaders[a], leaders[b])
        before = leaders.copy()
        np.minimum.at(leaders, a, lowest)
        np.minimum.at(leaders, b, lowest)
        leaders = leaders[leaders]
        if np.array_equal(before, leaders):
            return leaders
