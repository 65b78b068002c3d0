"""Pre-training of an encoder by synonym alignment: pairs of names of a knowledge base (SapBERT)."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from biograft.artifacts import hash_file, new_folder
from biograft.errors import ConfigError, EncodingError, FormatError, InputError, nearest
from biograft.kb import KnowledgeBase, fingerprint
from biograft.kb.tables import SCHEMAS
from biograft.models.model_card import ModelCard, write_card
from biograft.progress import Progress
from biograft.training import TrainingResult
from biograft.training.batches import EpochOrder, Lengths
from biograft.training.objectives.examples import Setting
from biograft.training.objectives.model import EncoderReader
from biograft.training.pretraining.dev_linking import BEST, DevLinking
from biograft.training.pretraining.recipe import SynonymPairsConfig
from biograft.training.pretraining.stream import Stream
from biograft.training.processes import join_processes

TRADE_NAMES = ("has_tradename", "tradename_of")


def concept_names(kb: KnowledgeBase, config: SynonymPairsConfig) -> pl.DataFrame:
    """Return ``concept, language, row`` (of the table of names), sorted in this order.

    A concept has each text once: the first of equal ones.

    Args:
        kb: Knowledge base of the names.
        config: Languages, and lowercasing.
    """
    names = read_texts(kb, "names", config.languages)
    if config.lowercase:
        names = names.with_columns(pl.col("text").str.to_lowercase())
    if config.trade_names:
        names = pl.concat([names, _trade_names(kb, names)])
    names = names.unique(["concept", "text"], keep="first", maintain_order=True)
    return names.select("concept", "language", "row").sort("concept", "language", "row")


def read_texts(kb: KnowledgeBase, table: str, languages: tuple[str, ...]) -> pl.DataFrame:
    """Return ``row, concept, language, text`` of a table, in the order of its rows.

    Args:
        kb: Knowledge base.
        table: ``names`` or ``definitions``.
        languages: Languages of the texts; empty: all.
    """
    columns = kb.table(table).select(["concept", "language", "text"])
    texts = pl.DataFrame(pl.from_arrow(columns)).with_row_index("row")
    if not languages:
        return texts
    return texts.filter(pl.col("language").is_in(language_codes(kb, languages)))


def language_codes(kb: KnowledgeBase, languages: tuple[str, ...]) -> list[int]:
    """Return the indices of languages in a store; raise for one without names.

    Args:
        kb: Knowledge base.
        languages: Languages, such as ``en``.
    """
    for language in languages:
        if language not in kb.languages:
            raise ConfigError(
                f"languages: the knowledge base has no names in {language!r}; "
                f"{nearest(language, kb.languages)}"
            )
    return [kb.languages.index(language) for language in languages]


def _trade_names(kb: KnowledgeBase, names: pl.DataFrame) -> pl.DataFrame:
    """Return the names that concepts get from their trade names, and trade names from concepts."""
    codes = [kb.relation_names.index(name) for name in TRADE_NAMES if name in kb.relation_names]
    relations = pl.DataFrame(
        pl.from_arrow(kb.table("relations").select(["head", "relation", "tail"]))
    ).filter(pl.col("relation").is_in(codes))
    forward = relations.select(concept="head", other="tail")
    backward = relations.select(concept="tail", other="head")
    related = pl.concat([forward, backward]).unique().sort("concept", "other")
    names_of_related = related.join(
        names.rename({"concept": "other"}), on="other", how="inner", maintain_order="left_right"
    )
    return names_of_related.select(names.columns)


_BATCH = 1 << 16


def read_pair_file(
    path: Path, label: Callable[[str], int]
) -> tuple[pa.ChunkedArray, npt.NDArray[np.int64]]:
    """Read the names (rows 2k and 2k + 1 are pair k) and the label of each pair.

    Args:
        path: File of lines ``id||name||name``.
        label: Returns the number of an id.
    """
    texts, labels = [], []
    lines = _lines(path)
    while batch := list(islice(lines, _BATCH)):
        texts.append(pa.array([name for _, *names in batch for name in names], pa.large_string()))
        labels.append(np.array([label(identifier) for identifier, *_ in batch], np.int64))
    if not labels:
        raise InputError("holds no pairs", path=path, remedy="expected lines id||name||name")
    return pa.chunked_array(texts), np.concatenate(labels)


def _lines(path: Path) -> Iterator[tuple[str, str, str]]:
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                parts = [part.strip() for part in line.split("||")]
                if parts == [""]:
                    continue
                if len(parts) != 3 or not all(parts):
                    raise FormatError(
                        "expected id||name||name", path=path, line=number, text=line.strip()
                    )
                yield parts[0], parts[1], parts[2]
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", path=path) from error
    except UnicodeDecodeError as error:
        raise EncodingError(f"is not UTF-8 ({error.reason})", path=path) from error


Ints = npt.NDArray[np.int64]


def count_partners(groups: Ints, blocks: Ints | None = None) -> Ints:
    """Count for each name the partners before it in its group.

    Args:
        groups: Group of each name, ascending.
        blocks: Language of each name, ascending within a group; only names of other languages are
            partners. Default: all are.
    """
    if blocks is None:
        return np.arange(len(groups), dtype=np.int64) - _starts(groups)
    return _starts(groups, blocks) - _starts(groups)


def sample_pairs(
    groups: Ints, partners: Ints, cap: int, rng: np.random.Generator
) -> tuple[Ints, int]:
    """Sample pairs as (n, 2) rows of names, at most ``cap`` of a group (0: all).

    Also returns the number of groups that were limited to the cap.

    Args:
        groups: Group of each name, ascending.
        partners: Number of names before it in the group that each is paired with.
        cap: Largest number of pairs of a group; 0: all.
        rng: Random numbers.
    """
    ends = np.cumsum(partners)
    bounds = np.flatnonzero(np.r_[True, groups[1:] != groups[:-1]]) if len(groups) else groups
    per_group = np.add.reduceat(partners, bounds) if len(groups) else partners
    first = np.cumsum(per_group) - per_group
    over = per_group > cap if cap else np.zeros(len(per_group), bool)
    pairs = _ranges(first[~over], per_group[~over])
    if over.any():
        chosen = _sample_distinct(per_group[over], cap, rng) + first[over, None]
        pairs = np.concatenate([pairs, chosen.ravel()])
    pairs.sort()
    right = np.searchsorted(ends, pairs, side="right")
    left = _starts(groups)[right] + pairs - (ends - partners)[right]
    return np.stack([left, right], axis=1), int(over.sum())


def _starts(*keys: Ints) -> Ints:
    """Return for each row the start of the run of rows with equal keys."""
    changed = np.zeros(len(keys[0]), bool)
    changed[:1] = True
    for key in keys:
        changed[1:] |= key[1:] != key[:-1]
    rows = np.arange(len(keys[0]), dtype=np.int64)
    starts: Ints = np.maximum.accumulate(np.where(changed, rows, 0))
    return starts


def _ranges(starts: Ints, lengths: Ints) -> Ints:
    """Concatenate the ranges start, start + 1, ... of these lengths."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    shifts: Ints = np.repeat(starts - (ends - lengths), lengths)
    return np.arange(total, dtype=np.int64) + shifts


def _sample_distinct(sizes: Ints, n: int, rng: np.random.Generator) -> Ints:
    """Sample ``n`` distinct numbers below each size (Floyd's algorithm, all sizes at once)."""
    chosen = np.full((len(sizes), n), -1, np.int64)
    for k in range(n):
        highest = sizes - n + k
        sampled = rng.integers(0, highest + 1)
        taken = (chosen[:, :k] == sampled[:, None]).any(axis=1)
        chosen[:, k] = np.where(taken, highest, sampled)
    return chosen


@dataclass(slots=True)
class PairCounts:
    """Counts of concepts, names and pairs."""

    n_concepts: int = 0
    """Concepts of the knowledge base with pairs."""
    n_singletons: int = 0
    """Concepts with names, but without a pair."""
    n_names: int = 0
    """Names of all concepts, each text once in a concept."""
    n_capped: int = 0
    """Concepts whose pairs were sampled."""
    n_pairs: int = 0
    """All pairs."""
    n_extra: int = 0
    """Pairs from the extra file."""

    def to_json(self) -> dict[str, int]:
        """Return the counts as plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class PairBatch:
    """Pairs of texts; ``left[k]`` and ``right[k]`` are of the concept ``labels[k]``."""

    left: tuple[str, ...]
    """First text of each pair."""
    right: tuple[str, ...]
    """Second text of each pair."""
    labels: Ints
    """Number of the concept of each pair."""

    def __len__(self) -> int:
        return len(self.left)

    @property
    def texts(self) -> tuple[str, ...]:
        """The first texts of all pairs, then the second."""
        return (*self.left, *self.right)

    @property
    def n_queries(self) -> int:
        """The number of texts that are searched for: the first of each pair."""
        return len(self)

    @property
    def arrays(self) -> dict[str, Ints]:
        """The concept of each text."""
        return {"labels": np.tile(self.labels, 2)}


class TextPairs:
    """Base of streams of pairs of texts: ``__len__`` and ``pair`` are all that one needs.

    Args:
        kb: Knowledge base of the texts; None where there is none.
        config: Settings of the stream.
    """

    def __init__(self, kb: KnowledgeBase | None, config: Any = None) -> None:
        self.kb, self.config = kb, config

    def __len__(self) -> int:
        """The number of pairs of an epoch."""
        raise NotImplementedError

    def pair(self, epoch: int, index: int) -> tuple[str, str, int]:
        """Return two texts and the concept that they name, a row of the knowledge base.

        Args:
            epoch: Number of the epoch.
            index: Index of the pair.
        """
        raise NotImplementedError

    def batch(self, epoch: int, indices: Sequence[int]) -> PairBatch:
        """Return some pairs as they are in an epoch.

        Args:
            epoch: Number of the epoch.
            indices: Indices of the pairs.
        """
        left, right, labels = zip(*(self.pair(epoch, int(i)) for i in indices), strict=True)
        return PairBatch(left, right, np.array(labels, np.int64))

    def lengths(self) -> Lengths:
        """Return the length of each pair, or a function that measures some of an epoch."""
        return lambda epoch, indices: [
            max(map(len, self.pair(epoch, int(index))[:2])) for index in indices
        ]

    def describe(self) -> dict[str, Any]:
        """Describe the pairs by counts and hashes; a resumed run must have the same."""
        return {"pairs": {"n_pairs": len(self)}}

    def about(self) -> str:
        """Return a line on the pairs."""
        return f"{len(self):,} pairs of texts"


class SynonymPairs(TextPairs):
    """Pairs as rows of the table of names; rows beyond it are names of the extra file.

    Args:
        kb: Knowledge base of the names; None for a file of pairs alone.
        config: Settings of the stream.
    """

    config: SynonymPairsConfig

    def __init__(self, kb: KnowledgeBase | None, config: SynonymPairsConfig | None = None) -> None:
        super().__init__(kb, config or SynonymPairsConfig())
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
        """Return the name of a row, lowercased if configured."""
        if self._extra is not None and row >= self._n_names:
            text: str = self._extra[row - self._n_names].as_py()
        elif self.kb is not None:
            text = self.kb.name(row).text
        return text.lower() if self.config.lowercase else text

    def pair(self, epoch: int, index: int) -> tuple[str, str, int]:
        """Return both names and the concept, the same in every epoch."""
        left, right = self.rows[index].tolist()
        return self.text(left), self.text(right), int(self.labels[index])

    def lengths(self) -> npt.NDArray[np.uint32]:
        """Return the length of the longer name of each pair, in bytes."""
        columns = [self.kb.table("names").column("text")] if self.kb is not None else []
        columns += [self._extra] if self._extra is not None else []
        sizes = np.concatenate([pl.Series(c).str.len_bytes().to_numpy() for c in columns])
        longest: npt.NDArray[np.uint32] = sizes[self.rows].max(axis=1)
        return longest

    def describe(self) -> dict[str, Any]:
        """Describe the pairs: their counts, and the hash of the extra file."""
        extra = self.config.extra_pairs
        return {
            "pairs": self.counts.to_json(),
            "extra_pairs": hash_file(extra) if extra else None,
        }

    def about(self) -> str:
        """Return a line on the pairs."""
        counts = self.counts
        return f"{counts.n_pairs:,} pairs of names of {counts.n_concepts:,} concepts"

    def _pair_names(self, kb: KnowledgeBase) -> tuple[npt.NDArray[np.int32], Ints]:
        """Pair the names of every concept."""
        names = concept_names(kb, self.config)
        concepts = names["concept"].to_numpy().astype(np.int64)
        blocks = names["language"].to_numpy().astype(np.int64)
        partners = count_partners(concepts, blocks if self.config.cross_language else None)
        rng = np.random.default_rng(self.config.seed)
        pairs, n_capped = sample_pairs(concepts, partners, self.config.max_pairs, rng)
        labels = concepts[pairs[:, 0]]
        self.counts.n_names, self.counts.n_capped = len(names), n_capped
        self.counts.n_concepts = len(np.unique(labels))
        self.counts.n_singletons = len(np.unique(concepts)) - self.counts.n_concepts
        return names["row"].to_numpy().astype(np.int32)[pairs], labels

    def _read_extra(self, path: Path) -> tuple[npt.NDArray[np.int32], Ints]:
        """Read pairs of a file; an id of the knowledge base means its concept."""
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


EVALUATED_PAIRS = 256
"""The number of pairs of an evaluation, the same ones each time."""


class PairStream(Stream):
    """Pairs of texts, which an encoder reads; the encoder that links a dev set best is kept."""

    def open(self, progress: Progress) -> None:
        """Open the pairs and the encoder."""
        config, start = self.recipe.stream, self.recipe.encoder
        progress.start("pairs")
        self.pairs: TextPairs = config.part(self.kb, config)
        self.rows = np.arange(len(self.pairs))
        self.lengths = self.pairs.lengths() if config.bucket_batches else None
        progress.start("encoder")
        if start.lower is None and config.lowercase:
            start = replace(start, lower=True)  # queries must be lowercased like the training data
        self.encoder = start.load()
        self.setting = Setting(width=self.encoder.dim, kb=self.kb)
        self.provenance = {
            "kb": fingerprint(self.kb, tuple(SCHEMAS)) if self.kb is not None else None,
            "encoder": self.encoder.fingerprint(),
            **self.pairs.describe(),
        }
        self.about, self.counts = self.pairs.about(), {"pairs": self.pairs.describe()["pairs"]}
        self._dev = None
        if config.dev is not None:
            self._dev = DevLinking(self.kb, self.encoder, config, self.run)

    def reader(self) -> EncoderReader:
        """Return the encoder, with the limit of what is encoded at once."""
        limit = self.recipe.training.device_batch_size
        return EncoderReader(self.encoder, self.objectives, limit)

    def batch(self, epoch: int, indices: Sequence[int]) -> PairBatch:
        """Return some pairs."""
        return self.pairs.batch(epoch, indices)

    def held_out(self, size: int) -> list[PairBatch]:
        """Return some pairs of the training data, the same ones each time."""
        order = EpochOrder(
            len(self.pairs),
            EVALUATED_PAIRS,
            self.recipe.training.seed,
            lengths=self.lengths,
            bucket_batches=self.recipe.stream.bucket_batches,
        )
        return [self.batch(0, next(order.batches(0, 0)).tolist())]

    def measure(self) -> dict[str, Any]:
        """Return the accuracy on the dev set, where there is one; keep the best encoder."""
        if self._dev is None:
            return {}
        accuracy = self._dev.accuracy(self.recipe.training.precision)
        if join_processes().is_main_process:
            self._dev.keep_best(accuracy)
        return {"acc@1": accuracy}

    def save(self, trained: TrainingResult) -> None:
        """Write the encoder, the best one where there is a dev set, with its card."""
        metrics = trained.metrics()
        if self._dev is not None:
            metrics |= self._dev.best() or {}
        card = ModelCard(
            base_model=str(self.recipe.encoder.name),
            method=f"Synonym alignment (recipe {self.recipe.name})",
            data=self.counts["pairs"],
            metrics={name: value for name, value in metrics.items() if "." not in name},
            sources=tuple(self.kb.manifest["sources"]) if self.kb is not None else (),
            languages=self.kb.languages if self.kb is not None else (),
        )
        with new_folder(self.run / "encoder", overwrite=True) as work:
            if self._dev is None:
                self.encoder.save_pretrained(work)
            else:
                shutil.copytree(self.run / BEST, work, dirs_exist_ok=True)
            write_card(work, card, self.encoder.settings)
