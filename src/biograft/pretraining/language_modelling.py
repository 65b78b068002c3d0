"""A language model and the objectives it is trained for, as one module with one forward pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.nn.knowledge import KnowledgeBertForMaskedLM
from biograft.nn.knowledge.entity_finder import is_told
from biograft.nn.precision import computing_in
from biograft.objectives.base import TensorBatch, TextStates
from biograft.objectives.examples import HIDDEN, SHOWN, GraphOfEntities, Setting, Showing, TextBatch
from biograft.pretraining.knowledge_model import graft, hash_knowledge, load_start, save_model
from biograft.pretraining.neighbourhoods import read_neighbourhood, with_vectors
from biograft.pretraining.packed_text import PackedText
from biograft.pretraining.recipe import KnowledgeConfig, Recipe
from biograft.pretraining.run import PretrainResult, hold_out, hold_out_together
from biograft.pretraining.text_batches import TextBatches
from biograft.pretraining.text_builder import open_packed
from biograft.progress import Progress
from biograft.training import Task, train
from biograft.training.processes import join_processes

_EVALUATED = 17
"""The seed of what is drawn for held-out batches."""


class TextModel(nn.Module):
    """Losses of batches of text; everything that learns is a part of it.

    ``lm`` is a masked language model, with a knowledge layer or plain. An objective with a head of
    its own offers it as ``head``. One that is a sum of means over different things offers them as
    ``terms``, by name; each of these counts and gives its loss, as other objectives do themselves.
    One whose loss need not be a mean over items counts these, too, with ``count_items``, for its
    accuracy.
    """

    def __init__(self, lm: Any, objectives: Mapping[str, Any]) -> None:
        super().__init__()
        self.lm, self.objectives = lm, dict(objectives)
        self.terms = _terms(self.objectives)
        heads = {name: getattr(each, "head", None) for name, each in self.objectives.items()}
        self.heads = nn.ModuleDict({name: head for name, head in heads.items() if head is not None})

    def forward(
        self, batch: TensorBatch, multipliers: Mapping[str, float]
    ) -> tuple[Tensor, dict[str, float]]:
        """Give the sum of the objectives' losses, and their statistics.

        Both are multiplied, so that means over several batches are means over all they have:
        by the multiplier of their own name, or else of their term.
        """
        states = self.states(batch)
        total, statistics = states.final.new_zeros((), dtype=torch.float32), {}
        for name, term in self.terms.items():
            loss, stats = term.loss(states, batch)
            multiplier = multipliers.get(name, 1.0)
            total = total + multiplier * loss
            for key, each in stats.items():
                statistic = f"{name}.{key}"
                statistics[statistic] = multipliers.get(statistic, multiplier) * each
        return total, statistics

    def states(self, batch: TensorBatch) -> TextStates:
        """Run the model once, for all objectives."""
        embeddings: Tensor = self.lm.get_input_embeddings().weight
        if not isinstance(self.lm, KnowledgeBertForMaskedLM):
            found = self.lm.base_model(batch.tokens, batch.mask, batch.segments)
            return TextStates(
                final=found.last_hidden_state,
                token_scores=self.lm.cls,
                embeddings=embeddings,
            )
        shown = batch.mention_labels.get(SHOWN, batch.entities).clamp_min(-1)
        found = self.lm.model(
            batch.tokens, batch.mask, batch.segments, batch.mentions, shown, gold=True
        )
        return TextStates(
            final=found.last_hidden_state,
            token_scores=self.lm.cls,
            embeddings=embeddings,
            detection=found.detection_scores,
            queries=found.queries,
            table=self.lm.model.entity_table.weight,
            read_mentions=self.lm.model.mention_reader,
        )


def _terms(objectives: Mapping[str, Any]) -> dict[str, Any]:
    """Name all that has a count and a loss of its own: objectives, or the terms that they have."""
    terms: dict[str, Any] = {}
    for name, objective in objectives.items():
        own = getattr(objective, "terms", None)
        terms |= {name: objective} if own is None else {f"{name}.{n}": t for n, t in own.items()}
    return terms


class Reading:
    """What training a ``TextModel`` asks of the loop."""

    def __init__(self, model: TextModel) -> None:
        self.model = model

    @property
    def device(self) -> torch.device:
        """Where the model lives."""
        return next(self.model.parameters()).device

    def loss(
        self, model: nn.Module, batch: TextBatch, multipliers: Mapping[str, float]
    ) -> tuple[Tensor, dict[str, float]]:
        """Give the loss of a batch, and its statistics."""
        found: tuple[Tensor, dict[str, float]] = model(
            TensorBatch.of(batch, self.device), multipliers
        )
        return found

    def counts(self, batch: TextBatch) -> dict[str, int]:
        """Say over how much each term of the loss takes its mean, and accuracies where apart."""
        terms = self.model.terms.items()
        items = {
            f"{name}.accuracy": each.count_items(batch)
            for name, each in terms
            if hasattr(each, "count_items")
        }
        return {name: each.count(batch) for name, each in terms} | items

    def evaluate(self, batches: list[TextBatch], precision: str) -> dict[str, float]:
        """Give the statistics of held-out batches, each weighed by what it has to say.

        What objectives draw, such as negatives, is the same each time.
        """
        with torch.random.fork_rng([self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(_EVALUATED)
            return self._evaluate(batches, precision)

    def _evaluate(self, batches: list[TextBatch], precision: str) -> dict[str, float]:
        sums: dict[str, float] = {}
        totals: dict[str, int] = {}
        for batch in batches:
            with computing_in(precision, self.device):
                _, stats = self.model(TensorBatch.of(batch, self.device), {})
            counts = self.counts(batch)
            for name, count in counts.items():
                totals[name] = totals.get(name, 0) + count
            for key, value in stats.items():
                sums[key] = sums.get(key, 0.0) + value * _of(key, counts)
        return {key: value / max(1, _of(key, totals)) for key, value in sums.items()}


def _of(statistic: str, counts: Mapping[str, int]) -> int:
    """Give the count of a statistic, or else that of its term."""
    return counts.get(statistic, counts[statistic.rpartition(".")[0]])


def read_on(
    recipe: Recipe, kb: KnowledgeBase | None, run: Path, *, resume: bool, progress: Progress
) -> PretrainResult:
    """Train a language model on annotated text; it is written to ``run/encoder``."""
    progress.start("encoder")
    start = load_start(recipe)
    processes, config = join_processes(), recipe.training
    with processes.main_process_first():
        packed = open_packed(
            recipe.stream, start.tokenizer, entities=start.entities, kb=kb, progress=progress
        )
    if start.entities is not None and not packed.entity_counts.any():
        raise ConfigError(
            f"stream.shards: {recipe.stream.shards} has none of the entities that "
            f"{recipe.encoder.name} knows; annotate with the store it was made for"
        )
    ids, counts, graph = _table(recipe.knowledge, packed, kb, grows=start.entities is None)
    grafted = graft(start, recipe, ids, kb, graph)
    setting = Setting.of(
        start.tokenizer,
        start.width,
        counts,
        graph=graph,
        embeddings=start.lm.get_input_embeddings().weight,
        shown=recipe.knowledge.shown if recipe.knowledge else "all",
    )
    objectives = {name: config.build(setting) for name, config in recipe.objectives.items()}
    reading = Reading(TextModel(grafted.lm, objectives))
    steps = preparing(objectives, recipe.knowledge, grafted.lm)
    learned, shown = (
        hold_out(len(packed), config.seed)
        if recipe.stream.replacement is None
        else hold_out_together(packed.documents, config.seed)
    )
    make = partial(
        TextBatches, packed, config.batch_size, in_turn(steps),
        seed=config.seed, strangers=recipe.stream.strangers,
        bucket_batches=recipe.stream.bucket_batches,
    )  # fmt: skip
    source = make(rank=processes.process_index, world=processes.num_processes, numbers=learned)
    _try_out(reading, make(numbers=learned[:1]))
    held_out = list(make(numbers=shown).batches(0)) if len(shown) else []
    task = Task(
        model=reading.model,
        source=source,
        compute_loss=reading.loss,
        counts=reading.counts,
        evaluate=partial(reading.evaluate, held_out, config.precision) if held_out else None,
        described=recipe.to_json(),
        provenance={
            "packed": packed.manifest["made_from"],
            "encoder": start.fingerprint,
            **hash_knowledge(recipe.knowledge),
        },
    )
    trained = train(task, config, run, resume=resume, progress=progress)
    if processes.is_main_process:
        save_model(grafted.lm, start.tokenizer, run / "encoder")
    told = _in_numbers(packed) | {"n_entities_drawn": grafted.n_drawn}
    return PretrainResult(run, run / "encoder", _in_words(packed), told, trained)


def preparing(
    objectives: Mapping[str, Any], knowledge: KnowledgeConfig | None, lm: Any
) -> list[Any]:
    """Give all that prepares examples: objectives, and what says which entities are told.

    A model that has such layers already, in a recipe that says nothing of them, is told what is
    hidden.
    """
    if not is_told(lm.base_model):
        return [*objectives.values()]
    return [*objectives.values(), Showing(knowledge.shown if knowledge else HIDDEN)]


def in_turn(steps: Iterable[Any]) -> tuple[Any, ...]:
    """Give what prepares examples in the order in which it does: by ``turn``, 0 where missing."""
    return tuple(sorted(steps, key=lambda step: getattr(step, "turn", 0)))


def _table(
    config: KnowledgeConfig | None, packed: PackedText, kb: KnowledgeBase | None, *, grows: bool
) -> tuple[Sequence[str], npt.NDArray[np.int64], GraphOfEntities | None]:
    """Give the entities of the table, how often each occurs, and the graph if one is read."""
    ids, counts = packed.entities, packed.entity_counts
    if config is None:
        return ids, counts, None
    if config.neighbours is None:
        return (*(with_vectors(config, ids, counts, kb) if grows else (ids, counts)), None)
    around = read_neighbourhood(config, ids, counts, kb, grows=grows)
    return around.ids, around.graph.counts, around.graph


@torch.no_grad()
def _try_out(reading: Reading, source: TextBatches) -> None:
    """Let an objective that does not fit say so before a run is begun."""
    reading.loss(reading.model, next(source.batches(0)), {})


def _in_words(packed: PackedText) -> str:
    return (
        f"{packed.n_tokens:,} tokens in {len(packed):,} sequences, with "
        f"{len(packed.entities):,} entities"
    )


def _in_numbers(packed: PackedText) -> dict[str, Any]:
    return {
        "text": {
            "n_sequences": len(packed),
            "n_tokens": packed.n_tokens,
            "n_entities": len(packed.entities),
            **packed.counts,
        }
    }
