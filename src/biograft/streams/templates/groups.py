"""Which names and definitions each concept has, as arrays of rows: nothing is a Python object."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from biograft.corpus.mention_text import SIGNS
from biograft.kb import KnowledgeBase
from biograft.streams.concept_names import language_codes
from biograft.streams.templates.config import NameTemplatesConfig

Rows = npt.NDArray[np.uint32]
Ends = npt.NDArray[np.int64]

_SIGNS = rf"[{re.escape(SIGNS)}\s]+"


@dataclass(frozen=True, slots=True)
class Groups:
    """Rows of the tables of names and of definitions, those of one concept together."""

    names: Rows
    name_ends: Ends
    """Where the names of each concept end; only concepts with names are here."""
    definitions: Rows
    definition_ends: Ends
    """The same of the same concepts."""

    def of_name(self, number: int) -> int:
        """Find the concept of a name, both by their numbers here."""
        return int(np.searchsorted(self.name_ends, number, side="right"))

    def names_of(self, concept: int) -> range:
        """Give the numbers of a concept's names."""
        return _range(self.name_ends, concept)

    def definitions_of(self, concept: int) -> range:
        """Give the numbers of a concept's definitions."""
        return _range(self.definition_ends, concept)


def group(kb: KnowledgeBase, config: NameTemplatesConfig) -> Groups:
    """Group what a store has in the languages wanted; a concept has each text once."""
    codes = language_codes(kb, config.languages) if config.languages else None
    names = _texts(kb, "names", codes)
    names = _each_once(names, _cleaned(pl.col("text"), lower=config.lower))
    definitions = _each_once(
        _texts(kb, "definitions", codes),
        _lowered(pl.col("text").str.strip_chars(), lower=config.lower),
    )
    concepts, name_ends = _ends(names["concept"].to_numpy())
    of_definitions = definitions["concept"].to_numpy()
    known = np.isin(of_definitions, concepts)
    return Groups(
        names["row"].to_numpy(),
        name_ends,
        definitions["row"].to_numpy()[known],
        np.searchsorted(of_definitions[known], concepts, side="right").astype(np.int64),
    )


def _texts(kb: KnowledgeBase, table: str, codes: list[int] | None) -> pl.DataFrame:
    """Give ``row, concept, text`` of a table, sorted by concept, which is the store's own order."""
    columns = kb.table(table).select(["concept", "language", "text"])
    texts = pl.DataFrame(pl.from_arrow(columns)).with_row_index("row")
    return texts if codes is None else texts.filter(pl.col("language").is_in(codes))


def _each_once(texts: pl.DataFrame, written: pl.Expr) -> pl.DataFrame:
    """Keep the first of equal texts of a concept, and none that is empty."""
    kept = texts.select("row", "concept", text=written).filter(pl.col("text") != "")
    kept = kept.unique(["concept", "text"], keep="first", maintain_order=True)
    return kept.select("row", "concept")


def _cleaned(text: pl.Expr, *, lower: bool) -> pl.Expr:
    """Write names as ``clean_name`` does, a whole column at once; to find equal ones."""
    cased = _lowered(text, lower=lower)
    cleaned = cased.str.replace_all(_SIGNS, " ").str.strip_chars()
    return pl.when(cleaned == "").then(cased.str.strip_chars()).otherwise(cleaned)


def _lowered(text: pl.Expr, *, lower: bool) -> pl.Expr:
    return text.str.to_lowercase() if lower else text


def _ends(concepts: Rows) -> tuple[Rows, Ends]:
    """Give the concepts, ascending, and where the rows of each end."""
    found, counts = np.unique(concepts, return_counts=True)
    return found, np.cumsum(counts, dtype=np.int64)


def _range(ends: Ends, row: int) -> range:
    return range(int(ends[row - 1]) if row else 0, int(ends[row]))
