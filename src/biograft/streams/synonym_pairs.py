"""Pairs of names of one concept, from any knowledge base (SapBERT's training data)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.streams.concept_names import concept_names
from biograft.streams.pair_config import SynonymPairsConfig
from biograft.streams.pair_file import read_pair_file
from biograft.streams.pair_table import Ints, count_partners, sample_pairs


@dataclass(slots=True)
class PairCounts:
    """What became of the concepts and their names."""

    n_concepts: int = 0
    """Concepts of the knowledge base that give pairs."""
    n_singletons: int = 0
    """Concepts with names but no two to pair."""
    n_names: int = 0
    """Names of all concepts, each text once in a concept."""
    n_capped: int = 0
    """Concepts whose pairs were sampled."""
    n_pairs: int = 0
    """Pairs in all."""
    n_extra: int = 0
    """Pairs from the extra file."""

    def to_json(self) -> dict[str, int]:
        """Give the counts as plain values."""
        return asdict(self)


class SynonymPairs:
    """Pairs as rows of the table of names; rows past its end are names of the extra file."""

    def __init__(self, kb: KnowledgeBase | None, config: SynonymPairsConfig | None = None) -> None:
        self.kb, self.config = kb, config or SynonymPairsConfig()
        self.counts = PairCounts()
        self._n_names = kb.n_names if kb is not None else 0
        self._extra: pa.ChunkedArray | None = None
        parts = []
        if kb is not None:
            parts.append(self._pair_names(kb))
        if self.config.extra_pairs is not None:
            parts.append(self._read_extra(self.config.extra_pairs))
        if not parts:
            raise ConfigError("stream: neither a knowledge base nor extra_pairs was given")
        self.rows: npt.NDArray[np.int32] = np.concatenate([rows for rows, _ in parts])
        self.labels: Ints = np.concatenate([labels for _, labels in parts])
        self.counts.n_pairs = len(self.rows)
        if not len(self.rows):
            raise ConfigError(
                "stream: no concept has two names to pair; give a knowledge base with synonyms, or "
                "loosen languages and cross_language"
            )

    def __len__(self) -> int:
        return len(self.rows)

    def text(self, row: int) -> str:
        """Give the name in a row, lower-cased if so configured."""
        if self._extra is not None and row >= self._n_names:
            text: str = self._extra[row - self._n_names].as_py()
        elif self.kb is not None:
            text = self.kb.name(row).text
        return text.lower() if self.config.lowercase else text

    def lengths(self) -> npt.NDArray[np.uint32]:
        """Give the length of the longer name of each pair, in bytes."""
        columns = [self.kb.table("names").column("text")] if self.kb is not None else []
        columns += [self._extra] if self._extra is not None else []
        sizes = np.concatenate([pl.Series(c).str.len_bytes().to_numpy() for c in columns])
        longest: npt.NDArray[np.uint32] = sizes[self.rows].max(axis=1)
        return longest

    def _pair_names(self, kb: KnowledgeBase) -> tuple[npt.NDArray[np.int32], Ints]:
        """Pair the names of every concept."""
        names = concept_names(kb, self.config)
        concepts = names["concept"].to_numpy().astype(np.int64)
        blocks = names["language"].to_numpy().astype(np.int64)
        partners = count_partners(concepts, blocks if self.config.cross_language else None)
        rng = np.random.default_rng(self.config.seed)
        places, n_capped = sample_pairs(concepts, partners, self.config.max_pairs, rng)
        labels = concepts[places[:, 0]]
        self.counts.n_names, self.counts.n_capped = len(names), n_capped
        self.counts.n_concepts = len(np.unique(labels))
        self.counts.n_singletons = len(np.unique(concepts)) - self.counts.n_concepts
        return names["row"].to_numpy().astype(np.int32)[places], labels

    def _read_extra(self, path: Path) -> tuple[npt.NDArray[np.int32], Ints]:
        """Read pairs of a file; an id that the knowledge base knows means its concept."""
        known: dict[str, int] = {}
        n_concepts = len(self.kb) if self.kb is not None else 0

        def label(identifier: str) -> int:
            if identifier not in known:
                row = self.kb.find_row(identifier) if self.kb is not None else None
                known[identifier] = n_concepts + len(known) if row is None else row
            return known[identifier]

        self._extra, labels = read_pair_file(path, label)
        self.counts.n_extra = len(labels)
        rows = self._n_names + np.arange(2 * len(labels), dtype=np.int32).reshape(-1, 2)
        return rows.astype(np.int32), labels
