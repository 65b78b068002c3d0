"""The module that is trained on any stream: a reader of batches, the heads of objectives, losses.

A stream decides how a batch is read: a ``Reader`` computes its states. ``ObjectiveModel`` has the
reader and the objectives, and computes all losses inside its forward pass, so that every parameter
of an objective is trained, saved, resumed and shared among processes with the model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from biograft.models import TextEncoder
from biograft.models.batches import USUAL_LENGTH, token_batches
from biograft.models.precision import autocast_in
from biograft.training.batches import BatchSource
from biograft.training.loop import Task
from biograft.training.objectives.base import Loss, Objective, to_device
from biograft.training.processes import gather_rows, own_part

_EVALUATION_SEED = 17
"""The seed of the sampling in held-out batches."""
_BATCH_TOKENS = 64 * USUAL_LENGTH
"""The tokens of texts that are encoded at once."""
_ALIKE: Mapping[str, float] = MappingProxyType({})

View = Callable[[str], Any]
"""Returns the batch as an objective sees it, by the name of the objective."""


class ObjectiveModel(nn.Module):
    """A reader of batches and objectives as one module, with one forward pass for all losses.

    Args:
        reader: Computes the states of a batch, and the batch as each objective sees it.
        objectives: Objectives by name.
    """

    def __init__(self, reader: nn.Module, objectives: Mapping[str, Objective]) -> None:
        super().__init__()
        self.reader, self.objectives = reader, dict(objectives)
        self.terms = {
            f"{name}.{term}" if term else name: (name, loss_term)
            for name, objective in self.objectives.items()
            for term, loss_term in objective.terms.items()
        }
        heads = {name: each.head for name, each in objectives.items() if each.head is not None}
        self.heads = nn.ModuleDict(heads).to(self.device)

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        return next(self.reader.parameters()).device

    @property
    def divisible(self) -> bool:
        """Whether a batch may be divided: no objective compares its examples."""
        return not any(each.compares for each in self.objectives.values())

    def forward(self, batch: Any, multipliers: Mapping[str, float] = _ALIKE) -> Loss:
        """Compute the sum of the objectives' losses, and their statistics.

        Args:
            batch: A batch of the stream.
            multipliers: Multiplier of each loss and statistic by its own name, or that of its term,
                so that means over several batches are means over all their items.
        """
        states, view = self.reader(batch)
        return self._losses(states, view, multipliers)

    def _losses(self, states: Any, view: View, multipliers: Mapping[str, float]) -> Loss:
        losses, statistics = [], {}
        for name, (owner, term) in self.terms.items():
            loss, stats = term.loss(states, view(owner))
            multiplier = multipliers.get(name, 1.0)
            losses.append(multiplier * loss)
            for key, each in {"loss": float(loss.detach()), **stats}.items():
                statistic = f"{name}.{key}"
                statistics[statistic] = multipliers.get(statistic, multiplier) * each
        return sum(losses[1:], losses[0]), statistics

    def counts(self, batch: Any) -> dict[str, int]:
        """Count the items that the losses and statistics are means over, by their names."""
        return {
            f"{name}.{key}" if key else name: n
            for name, (_, term) in self.terms.items()
            for key, n in term.counts(batch).items()
        }

    def _shared_counts(self, batch: Any) -> dict[str, int]:
        """Count the items whose numbers the processes share to weigh their means."""
        gathered = [name for name, (_, term) in self.terms.items() if term.gathered]
        counts = self.counts(batch).items()
        return {key: n for key, n in counts if not key.startswith(tuple(gathered))}

    def task(self, source: BatchSource[Any], **options: Any) -> Task[Any]:
        """Make the task that trains this model.

        Args:
            source: Batches of the stream.
            options: Further fields of the task.
        """
        return Task(
            model=self,
            source=source,
            compute_loss=lambda model, batch, *multipliers: model(batch, *multipliers),
            counts=self._shared_counts if self.divisible else None,
            divisible=self.divisible,
            **options,
        )

    @torch.no_grad()
    def evaluate(self, batches: Sequence[Any], precision: str) -> dict[str, Any]:
        """Compute the statistics of held-out batches, weighted by their counts.

        Beside an accuracy stand ``n``, the number of items, ``error``, its standard error (of a
        mean over batches), and ``chance``, which the most frequent label alone would reach.

        The sampling of objectives, such as that of negatives, is the same each time.

        Args:
            batches: Held-out batches.
            precision: One of ``models.precision.PRECISIONS``.
        """
        with torch.random.fork_rng([self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(_EVALUATION_SEED)
            return self._evaluate(batches, precision)

    def _evaluate(self, batches: Sequence[Any], precision: str) -> dict[str, Any]:
        read: dict[str, list[tuple[float, int]]] = {}
        found: dict[str, Any] = {}
        for batch in batches:
            with autocast_in(precision, self.device):
                states, view = self.reader(batch)
                _, stats = self._losses(states, view, _ALIKE)
            counts = self.counts(batch)
            for key, value in stats.items():
                n = counts.get(key, counts[key.rpartition(".")[0]])
                read.setdefault(key, []).append((value, n))
            for name, objective in self.objectives.items():
                shown = objective.report(states, view(name))
                found |= {f"{name}.{key}": value for key, value in shown.items()}
        for key, pairs in read.items():
            values, sizes = np.array(pairs).T
            n = max(1.0, sizes.sum())
            found[key] = float((values * sizes).sum() / n)
            if not key.endswith(".accuracy"):
                continue
            name = key.removesuffix(".accuracy")
            spread = np.square((values - found[key]) * sizes).sum() * len(sizes)
            found[f"{name}.n"] = float(sizes.sum())
            found[f"{name}.error"] = float(np.sqrt(spread / max(1, len(sizes) - 1)) / n)
            labels = [self.terms[name][1].labels(batch) for batch in batches]
            known = Counter(int(k) for each in labels if each is not None for k in each[each >= 0])
            if known:
                found[f"{name}.chance"] = max(known.values()) / known.total()
        return found


class EncoderReader(nn.Module):
    """Reads texts with an encoder: their vectors, and the arrays of the batch as tensors.

    A batch has ``texts``, of which the first ``n_queries`` are searched for, and ``arrays`` by
    name. An objective may add further texts to encode (``Objective.texts``); it finds their
    vectors among its arrays.

    Where a loss compares the examples of a batch, every process has the whole batch, encodes its
    part of the texts and gathers the vectors of the others. With a limit of what a device encodes
    at once, states are computed again in the backward pass: the loss and its gradient stay those of
    the whole batch (gradient caching; Gao et al. 2021).

    Args:
        encoder: Encoder in training.
        objectives: Objectives by name.
        limit: Pairs of texts that are encoded at once; 0: all of a batch.
        by_length: Encode texts in batches of similar length, with little padding.
    """

    def __init__(
        self,
        encoder: TextEncoder,
        objectives: Mapping[str, Objective],
        limit: int = 0,
        *,
        by_length: bool = False,
    ) -> None:
        super().__init__()
        self.model: nn.Module = encoder.network
        self.encoder, self._objectives = encoder, objectives
        self._compares = any(each.compares for each in objectives.values())
        self._limit, self._by_length = 2 * limit if self._compares else 0, by_length

    def forward(self, batch: Any) -> tuple[Tensor, View]:
        """Return the vectors of the texts of a batch, and the arrays by objective.

        Args:
            batch: The batch.
        """
        vectors = self._encode(batch.texts, batch.n_queries)
        arrays = to_device(batch.arrays, vectors.device)
        views = {
            name: arrays
            | {key: self._encode(more, 0) for key, more in objective.texts(batch).items()}
            for name, objective in self._objectives.items()
        }
        return vectors, views.__getitem__

    def _encode(self, texts: Sequence[str], n_queries: int) -> Tensor:
        if not (self._compares and self.training):
            return self._embed(texts, n_queries)
        own = own_part(len(texts))
        vectors = self._embed([texts[row] for row in own], sum(row < n_queries for row in own))
        return gather_rows(vectors, len(texts))

    def _embed(self, texts: Sequence[str], n_queries: int) -> Tensor:
        tokens = self.encoder.tokenize(texts, n_queries)
        caches = bool(self._limit) and torch.is_grad_enabled() and len(texts) > self._limit
        if not (self._by_length or caches):
            return self.encoder.embed(tokens)

        def embed(*part: Tensor) -> Tensor:
            return self.encoder.embed(dict(zip(tokens, part, strict=True)))

        lengths = tokens["attention_mask"].sum(1).numpy()
        vectors, order = [], []
        n_tokens = self._limit * USUAL_LENGTH if caches else _BATCH_TOKENS
        for rows in token_batches(lengths, min(n_tokens, _BATCH_TOKENS)):
            part = [value[rows, : int(lengths[rows].max())] for value in tokens.values()]
            vectors.append(
                checkpoint(embed, *part, use_reentrant=False) if caches else embed(*part)
            )
            order.append(rows)
        back = torch.from_numpy(np.argsort(np.concatenate(order)))
        return torch.cat(vectors)[back.to(vectors[0].device)]
