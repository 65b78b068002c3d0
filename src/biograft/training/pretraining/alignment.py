"""Pre-training of an encoder by synonym alignment: pairs of names of a knowledge base (SapBERT)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import torch
from torch import Tensor, distributed, nn
from torch.utils.checkpoint import checkpoint

from biograft.artifacts import hash_file, new_folder
from biograft.errors import ConfigError, EncodingError, FormatError, InputError, nearest
from biograft.kb import KnowledgeBase, fingerprint
from biograft.kb.tables import SCHEMAS
from biograft.models import TextEncoder
from biograft.models.model_card import ModelCard, write_card
from biograft.models.precision import autocast_in
from biograft.progress import Progress
from biograft.training import Task, train
from biograft.training.batches import EpochOrder, OrderedBatches, Shard
from biograft.training.objectives.base import Loss
from biograft.training.objectives.examples import Setting
from biograft.training.objectives.synonym_alignment import PairObjective, cosine_histogram
from biograft.training.pretraining.dev_linking import BEST, DevLinking
from biograft.training.pretraining.recipe import (
    PretrainingRecipe,
    PretrainResult,
    SynonymPairsConfig,
)
from biograft.training.processes import join_processes

TRADE_NAMES = ("has_tradename", "tradename_of")


def concept_names(kb: KnowledgeBase, config: SynonymPairsConfig) -> pl.DataFrame:
    """Return ``concept, language, row`` (of the table of names), sorted in this order.

    A concept has each text once: the first of equal ones.

    Args:
        kb: Knowledge base of the names.
        config: Languages, and lowercasing.
    """
    texts = pl.from_arrow(kb.table("names").select(["concept", "language", "text"]))
    names = pl.DataFrame(texts).with_row_index("row")
    if config.languages:
        names = names.filter(pl.col("language").is_in(language_codes(kb, config.languages)))
    if config.lowercase:
        names = names.with_columns(pl.col("text").str.to_lowercase())
    if config.trade_names:
        names = pl.concat([names, _trade_names(kb, names)])
    names = names.unique(["concept", "text"], keep="first", maintain_order=True)
    return names.select("concept", "language", "row").sort("concept", "language", "row")


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
    """Pairs of names; ``left[k]`` and ``right[k]`` name the concept ``labels[k]``."""

    left: tuple[str, ...]
    right: tuple[str, ...]
    labels: Ints

    def __len__(self) -> int:
        return len(self.left)


class SynonymPairs:
    """Pairs as rows of the table of names; rows beyond it are names of the extra file.

    Args:
        kb: Knowledge base of the names; None for a file of pairs alone.
        config: Settings of the stream.
    """

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
        """Return the name of a row, lowercased if configured."""
        if self._extra is not None and row >= self._n_names:
            text: str = self._extra[row - self._n_names].as_py()
        elif self.kb is not None:
            text = self.kb.name(row).text
        return text.lower() if self.config.lowercase else text

    def batch(self, epoch: int, indices: list[int]) -> PairBatch:
        """Return some pairs, the same in every epoch.

        Args:
            epoch: Number of the epoch.
            indices: Indices of the pairs.
        """
        rows = self.rows[indices].tolist()
        return PairBatch(
            left=tuple(self.text(left) for left, _ in rows),
            right=tuple(self.text(right) for _, right in rows),
            labels=self.labels[indices],
        )

    def lengths(self) -> npt.NDArray[np.uint32]:
        """Return the length of the longer name of each pair, in bytes."""
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


class PairBatches(OrderedBatches[PairBatch]):
    """Batches in a new order each epoch, readable from any epoch and position."""

    def __init__(
        self,
        pairs: SynonymPairs,
        batch_size: int,
        *,
        seed: int = 33,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        """Prepare the batches of a process.

        Args:
            pairs: The pairs, and the number of batches in which lengths are similar.
            batch_size: The number of pairs of a batch of one process.
            seed: Decides the order, with the epoch.
            rank: The number of this process.
            world: The number of processes.
        """
        n_batches = pairs.config.bucket_batches
        order = EpochOrder(
            len(pairs),
            batch_size,
            seed,
            Shard(rank, world),
            lengths=pairs.lengths() if n_batches else None,
            bucket_batches=n_batches,
            called="stream: pairs of names:",
        )
        super().__init__(order, pairs.batch)


def gather_rows(embeddings: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Gather the embeddings and labels of all processes, in the order of their ranks.

    Processes may hold different numbers of rows. The values are those of all processes, in each of
    them. A gradient flows only to a process's own rows, times the number of processes: their mean,
    which DDP takes, is then the gradient of the loss of all rows.

    Args:
        embeddings: Vectors of this process.
        labels: Their labels.
    """
    if not distributed.is_initialized() or distributed.get_world_size() == 1:
        return embeddings, labels
    rank, world = distributed.get_rank(), distributed.get_world_size()
    counts = [torch.zeros(1, dtype=torch.int64, device=labels.device) for _ in range(world)]
    distributed.all_gather(counts, torch.tensor([len(labels)], device=labels.device))
    sizes = [int(count) for count in counts]
    fixed = embeddings.detach()
    all_embeddings = _gather_padded(fixed, sizes)
    all_embeddings[rank] = fixed + world * (embeddings - fixed)
    return torch.cat(all_embeddings), torch.cat(_gather_padded(labels, sizes))


def _gather_padded(rows: Tensor, sizes: Sequence[int]) -> list[Tensor]:
    """Gather the rows of each process, padded to one number of rows on the way."""
    padded = rows.new_zeros((max(sizes), *rows.shape[1:]))
    padded[: len(rows)] = rows
    gathered = [torch.empty_like(padded) for _ in sizes]
    distributed.all_gather(gathered, padded)
    return [each[:size] for each, size in zip(gathered, sizes, strict=True)]


class PairOutput(NamedTuple):
    """The results of a forward pass over pairs of names."""

    embeddings: Tensor  # (rows, width), without gradient
    labels: Tensor  # (rows,)
    losses: dict[str, Loss]
    """The loss and the statistics of each objective."""


_NAMES = ("", "")
"""The key of both names of all pairs, which belong to no objective."""


class PairModel(nn.Module):
    """An encoder and objectives of name pairs as one module, so that all of it is trained.

    In training the loss is that of the names of all processes, mined together. With a limit of what
    a device encodes at once, states are computed again in the backward pass: the loss and its
    gradient stay those of the whole batch (gradient caching; Gao et al. 2021).

    Args:
        encoder: Encoder in training.
        objectives: Objectives by name.
        limit: Pairs that are encoded at once; 0: all of a batch.
    """

    def __init__(
        self, encoder: TextEncoder, objectives: Mapping[str, PairObjective], limit: int = 0
    ) -> None:
        super().__init__()
        self.model: nn.Module = encoder.model
        heads = {name: each.head for name, each in objectives.items() if each.head is not None}
        self.heads = nn.ModuleDict(heads).to(encoder.device)
        self.encoder, self.objectives, self.limit = encoder, objectives, limit

    def forward(
        self, texts: Mapping[tuple[str, str], Mapping[str, Tensor]], labels: Tensor
    ) -> PairOutput:
        """Encode names and further texts, and compute the losses.

        Args:
            texts: Token ids and masks by objective and name of the text: those of ``_NAMES`` are
                both names of all pairs.
            labels: Concept of each pair.
        """
        vectors = {key: self._embed(tokens) for key, tokens in texts.items()}
        left, right = vectors.pop(_NAMES).chunk(2)
        labels = labels.to(left.device)
        if self.training:
            joined, labels = gather_rows(torch.cat([left, right, *vectors.values()], 1), labels)
            left, right, *others = joined.chunk(2 + len(vectors), 1)
            vectors = dict(zip(vectors, others, strict=True))
        embeddings, labels = torch.cat([left, right]), labels.repeat(2)
        losses = {}
        for name, objective in self.objectives.items():
            own = {key: found for (owner, key), found in vectors.items() if owner == name}
            losses[name] = objective.loss(embeddings, {"labels": labels, **own})
        return PairOutput(embeddings.detach(), labels, losses)

    def _embed(self, tokens: Mapping[str, Tensor]) -> Tensor:
        limit = 2 * self.limit
        if not limit or not torch.is_grad_enabled() or len(tokens["input_ids"]) <= limit:
            return self.encoder.embed(tokens)

        def embed(*part: Tensor) -> Tensor:
            return self.encoder.embed(dict(zip(tokens, part, strict=True)))

        parts = zip(*(torch.split(values, limit) for values in tokens.values()), strict=True)
        return torch.cat([checkpoint(embed, *part, use_reentrant=False) for part in parts])

    def run(self, model: nn.Module, batch: PairBatch) -> PairOutput:
        """Run the model over a batch, both names of a pair in one pass.

        Args:
            model: This module, as the training loop wraps it.
            batch: The batch.
        """
        texts = {_NAMES: self.encoder.tokenize([*batch.left, *batch.right], n_queries=len(batch))}
        for name, objective in self.objectives.items():
            for key, more in objective.texts(batch).items():
                texts[name, key] = self.encoder.tokenize(more)
        output: PairOutput = model(texts, torch.from_numpy(batch.labels))
        return output

    def loss(self, model: nn.Module, batch: PairBatch) -> Loss:
        """Compute the sum of the objectives' losses, and their statistics.

        Args:
            model: This module, as the training loop wraps it.
            batch: The batch.
        """
        losses = self.run(model, batch).losses
        statistics = {
            f"{name}.{key}" if len(losses) > 1 else key: value
            for name, (_, stats) in losses.items()
            for key, value in stats.items()
        }
        return torch.stack([loss for loss, _ in losses.values()]).sum(), statistics

    def evaluate(self, batch: PairBatch, precision: str) -> dict[str, Any]:
        """Compute the losses of a batch, and the histograms of its cosines.

        Args:
            batch: The batch.
            precision: One of ``models.precision.PRECISIONS``.
        """
        with autocast_in(precision, self.encoder.device):
            embeddings, labels, losses = self.run(self, batch)
        return {
            name: {
                "loss": float(loss),
                **stats,
                "cosines": cosine_histogram(embeddings, labels, self.objectives[name].miner),
            }
            for name, (loss, stats) in losses.items()
        }


EVALUATED_PAIRS = 256
"""The number of pairs of an evaluation, the same ones each time."""


def pretrain_alignment(
    recipe: PretrainingRecipe,
    kb: KnowledgeBase | None,
    run: Path,
    *,
    resume: bool,
    progress: Progress,
) -> PretrainResult:
    """Train an encoder on synonym pairs; it is written to ``run/encoder``.

    Args:
        recipe: The recipe.
        kb: Knowledge base of the synonyms.
        run: Folder of the run.
        resume: Continue from its last checkpoint.
        progress: Progress of training.
    """
    processes, config = join_processes(), recipe.training
    progress.start("pairs")
    pairs = SynonymPairs(kb, recipe.stream)
    source = PairBatches(
        pairs,
        config.whole_batches().plan_batch(processes.num_processes).size,
        seed=config.seed,
        rank=processes.process_index,
        world=processes.num_processes,
    )
    progress.start("encoder")
    encoder = _load_encoder(recipe)
    setting = Setting(width=encoder.dim, kb=kb)
    objectives = {name: each.build(setting) for name, each in recipe.objectives.items()}
    model = PairModel(encoder, objectives, config.device_batch_size)
    evaluated = next(PairBatches(pairs, EVALUATED_PAIRS, seed=config.seed).batches(0))
    dev = None
    if recipe.stream.dev is not None:
        dev = DevLinking(kb, encoder, recipe.stream, run)

    def evaluate() -> dict[str, Any]:
        results = model.evaluate(evaluated, config.precision)
        if dev is None:
            return results
        accuracy = dev.accuracy(config.precision)
        if processes.is_main_process:
            dev.keep_best(accuracy)
        return {"acc@1": accuracy, **results}

    task = Task(
        model=model,
        source=source,
        compute_loss=model.loss,
        evaluate=evaluate,
        described=recipe.to_json(),
        provenance=_provenance(recipe, kb, encoder, pairs),
        may_shard=True,
    )
    trained = train(task, config.whole_batches(), run, resume=resume, progress=progress)
    counts = pairs.counts
    if processes.is_main_process:
        card = ModelCard(
            base_model=str(recipe.encoder.name),
            method=f"Synonym alignment (recipe {recipe.name})",
            data=counts.to_json(),
            metrics=trained.metrics() | (dev.best() or {} if dev else {}),
            sources=tuple(kb.manifest["sources"]) if kb is not None else (),
        )
        if dev is not None:
            encoder = TextEncoder.from_pretrained(run / BEST)
        with new_folder(run / "encoder", overwrite=True) as work:
            encoder.save_pretrained(work)
            write_card(work, card, encoder.settings)
    training_data = f"{counts.n_pairs:,} pairs of names of {counts.n_concepts:,} concepts"
    return PretrainResult(run, run / "encoder", training_data, {"pairs": counts.to_json()}, trained)


def _load_encoder(recipe: PretrainingRecipe) -> TextEncoder:
    lower = recipe.encoder.lower
    if lower is None and recipe.stream.lowercase:
        lower = True  # queries must be lowercased like the training data
    return replace(recipe.encoder, lower=lower).load()


def _provenance(
    recipe: PretrainingRecipe, kb: KnowledgeBase | None, encoder: TextEncoder, pairs: SynonymPairs
) -> dict[str, Any]:
    """Describe the inputs of a run, by hashes."""
    extra = recipe.stream.extra_pairs
    return {
        "kb": fingerprint(kb, tuple(SCHEMAS)) if kb is not None else None,
        "extra_pairs": hash_file(extra) if extra else None,
        "encoder": encoder.fingerprint(),
        "pairs": pairs.counts.to_json(),
    }
