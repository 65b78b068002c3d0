"""Which names a concept brings to training: those of the languages wanted, each text once."""

from __future__ import annotations

import polars as pl

from biograft.errors import ConfigError, nearest
from biograft.kb import KnowledgeBase
from biograft.streams.pair_config import SynonymPairsConfig

TRADE_NAMES = ("has_tradename", "tradename_of")


def concept_names(kb: KnowledgeBase, config: SynonymPairsConfig) -> pl.DataFrame:
    """Give ``concept, language, row`` (of the table of names), sorted in this order.

    A concept has each text once: the first of equal ones, after lower-casing if configured.
    """
    texts = pl.from_arrow(kb.table("names").select(["concept", "language", "text"]))
    names = pl.DataFrame(texts).with_row_index("row")
    if config.languages:
        names = names.filter(pl.col("language").is_in(language_codes(kb, config.languages)))
    if config.lowercase:
        names = names.with_columns(pl.col("text").str.to_lowercase())
    if config.trade_names:
        names = pl.concat([names, _borrowed(kb, names)])
    names = names.unique(["concept", "text"], keep="first", maintain_order=True)
    return names.select("concept", "language", "row").sort("concept", "language", "row")


def language_codes(kb: KnowledgeBase, languages: tuple[str, ...]) -> list[int]:
    """Give the numbers of languages in a store; one that it has no names in is refused."""
    for language in languages:
        if language not in kb.languages:
            raise ConfigError(
                f"languages: the knowledge base has no names in {language!r}; "
                f"{nearest(language, kb.languages)}"
            )
    return [kb.languages.index(language) for language in languages]


def _borrowed(kb: KnowledgeBase, names: pl.DataFrame) -> pl.DataFrame:
    """Give concepts the own names of their trade names, and the other way round."""
    codes = [kb.relation_names.index(name) for name in TRADE_NAMES if name in kb.relation_names]
    relations = pl.DataFrame(
        pl.from_arrow(kb.table("relations").select(["head", "relation", "tail"]))
    ).filter(pl.col("relation").is_in(codes))
    there = relations.select(concept="head", other="tail")
    back = relations.select(concept="tail", other="head")
    ties = pl.concat([there, back]).unique().sort("concept", "other")
    lent = ties.join(
        names.rename({"concept": "other"}), on="other", how="inner", maintain_order="left_right"
    )
    return lent.select(names.columns)
