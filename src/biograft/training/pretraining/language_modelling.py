"""Pre-train a masked language model on annotated text, with any text objectives of a recipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.models.knowledge import KnowledgeBertForMaskedLM
from biograft.models.knowledge.entity_finder import takes_entity_inputs
from biograft.models.precision import autocast_in
from biograft.progress import Progress
from biograft.training import Task, train
from biograft.training.objectives.base import Loss, Objective, TensorBatch, TextStates
from biograft.training.objectives.examples import (
    ALL,
    MIXED,
    VISIBLE_ENTITIES,
    WITHHELD_NEIGHBOURS,
    EntityGraph,
    EntityVisibility,
    ExampleTransform,
    Setting,
    TextBatch,
    sort_by_order,
)
from biograft.training.objectives.smedbert import MaskedNeighbour
from biograft.training.pretraining.knowledge_model import (
    graft,
    hash_knowledge,
    load_start,
    save_model,
)
from biograft.training.pretraining.neighbourhoods import read_neighbourhood, with_vectors
from biograft.training.pretraining.packed_text import PackedText, open_packed
from biograft.training.pretraining.recipe import KnowledgeConfig, PretrainingRecipe
from biograft.training.pretraining.run import PretrainResult, hold_out, hold_out_together
from biograft.training.pretraining.text_batches import TextBatches
from biograft.training.processes import join_processes

_EVALUATION_SEED = 17
"""The seed of the sampling in held-out batches."""


class TextModel(nn.Module):
    """A masked language model and its objectives, with one forward pass for all losses.

    ``lm`` has knowledge layers or is a plain BERT. All trained weights are in it.
    """

    def __init__(self, lm: Any, objectives: Mapping[str, Objective]) -> None:
        super().__init__()
        self.lm, self.objectives = lm, dict(objectives)
        self.terms = {
            f"{name}.{term}" if term else name: loss_term
            for name, objective in self.objectives.items()
            for term, loss_term in objective.terms.items()
        }
        heads = {name: objective.head for name, objective in self.objectives.items()}
        self.heads = nn.ModuleDict({name: head for name, head in heads.items() if head is not None})

    def forward(self, batch: TensorBatch, multipliers: Mapping[str, float]) -> Loss:
        """Compute the sum of the objectives' losses, and their statistics.

        A loss is multiplied by the multiplier of its term, a statistic by its own or else that of
        its term, so that means over several batches are means over all their items.
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
            encoder = self.lm.base_model
            output = encoder(batch.tokens, batch.mask, batch.segments)
            return TextStates(
                final=output.last_hidden_state,
                token_scores=self.lm.cls,
                embeddings=embeddings,
                encode=lambda tokens, mask: encoder(tokens, mask).last_hidden_state,
            )
        visible = batch.mention_labels.get(VISIBLE_ENTITIES, batch.entities).clamp_min(-1)
        output = self.lm.model(
            batch.tokens,
            batch.mask,
            batch.segments,
            batch.mentions,
            visible,
            gold=True,
            withheld=batch.mention_labels.get(WITHHELD_NEIGHBOURS),
        )
        return TextStates(
            final=output.last_hidden_state,
            token_scores=self.lm.cls,
            embeddings=embeddings,
            detection=output.detection_scores,
            queries=output.queries,
            table=self.lm.model.entity_table.weight,
            read_mentions=self.lm.model.mention_reader,
        )


class TextTraining:
    """Loss, counts and evaluation of a ``TextModel``, for ``training.Task``."""

    def __init__(self, model: TextModel) -> None:
        self.model = model

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        return next(self.model.parameters()).device

    def loss(self, model: nn.Module, batch: TextBatch, multipliers: Mapping[str, float]) -> Loss:
        """Compute the loss of a batch, and its statistics."""
        result: Loss = model(TensorBatch.of(batch, self.device), multipliers)
        return result

    def counts(self, batch: TextBatch) -> dict[str, int]:
        """Count the items that the loss and the accuracy of each term are means over."""
        terms = self.model.terms.items()
        items = {f"{name}.accuracy": term.count_items(batch) for name, term in terms}
        return {name: term.count(batch) for name, term in terms} | items

    def evaluate(self, batches: list[TextBatch], precision: str) -> dict[str, float]:
        """Compute the statistics of held-out batches, weighted by their counts.

        The sampling of objectives, such as that of negatives, is the same each time.
        """
        with torch.random.fork_rng([self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(_EVALUATION_SEED)
            return self._evaluate(batches, precision)

    def _evaluate(self, batches: list[TextBatch], precision: str) -> dict[str, float]:
        sums: dict[str, float] = {}
        totals: dict[str, int] = {}
        for batch in batches:
            with autocast_in(precision, self.device):
                _, stats = self.model(TensorBatch.of(batch, self.device), {})
            counts = self.counts(batch)
            for name, count in counts.items():
                totals[name] = totals.get(name, 0) + count
            for key, value in stats.items():
                sums[key] = sums.get(key, 0.0) + value * _count_of(key, counts)
        return {key: value / max(1, _count_of(key, totals)) for key, value in sums.items()}


def _count_of(statistic: str, counts: Mapping[str, int]) -> int:
    """Return the count of a statistic, or else that of its term."""
    return counts.get(statistic, counts[statistic.rpartition(".")[0]])


def pretrain_language_model(
    recipe: PretrainingRecipe,
    kb: KnowledgeBase | None,
    run: Path,
    *,
    resume: bool,
    progress: Progress,
) -> PretrainResult:
    """Train a language model on annotated text; it is written to ``run/encoder``."""
    processes, config = join_processes(), recipe.training
    plan = config.plan_batch(processes.num_processes)
    progress.start("encoder")
    start = load_start(recipe)
    with processes.main_process_first():
        packed = open_packed(
            recipe.stream, start.tokenizer, entities=start.entities, kb=kb, progress=progress
        )
    if start.entities is not None and not packed.entity_counts.any():
        raise ConfigError(
            f"stream.shards: {recipe.stream.shards} has none of the entities that "
            f"{recipe.encoder.name} knows; annotate it with the knowledge base of the model"
        )
    ids, counts, graph = _table(recipe.knowledge, packed, kb, grows=start.entities is None)
    grafted = graft(start, recipe, ids, kb, graph)
    setting = Setting.of(
        start.tokenizer,
        start.width,
        counts,
        graph=graph,
        embeddings=start.lm.get_input_embeddings().weight,
        entity_visibility=recipe.knowledge.entity_visibility if recipe.knowledge else ALL,
        encoder=None if start.entities or recipe.knowledge else start.lm.base_model,
    )
    objectives = {name: config.build(setting) for name, config in recipe.objectives.items()}
    text_training = TextTraining(TextModel(grafted.lm, objectives))
    transforms = example_transforms(objectives, recipe.knowledge, grafted.lm, graph)
    train_indices, held_out_indices = (
        hold_out(len(packed), config.seed)
        if recipe.stream.substitution is None
        else hold_out_together(packed.documents, config.seed)
    )
    make = partial(
        TextBatches,
        packed,
        plan.size,
        sort_by_order(transforms),
        seed=config.seed,
        random_next_probability=recipe.stream.random_next_probability,
        bucket_batches=recipe.stream.bucket_batches,
    )
    source = make(
        rank=processes.process_index,
        world=processes.num_processes,
        indices=train_indices,
        accumulate=plan.accumulate,
    )
    _try_out(text_training, make(indices=train_indices[:1]))
    held_out = list(make(indices=held_out_indices).batches(0)) if len(held_out_indices) else []
    task = Task(
        model=text_training.model,
        source=source,
        compute_loss=text_training.loss,
        counts=text_training.counts,
        evaluate=partial(text_training.evaluate, held_out, config.precision) if held_out else None,
        described=recipe.to_json(),
        provenance={
            "packed": packed.manifest["made_from"],
            "encoder": start.fingerprint,
            **hash_knowledge(recipe.knowledge),
        },
        may_shard=True,
        body=tuple(grafted.lm.base_model.parameters()),
    )
    trained = train(task, config, run, resume=resume, progress=progress)
    if processes.is_main_process:
        save_model(grafted.lm, start.tokenizer, run / "encoder")
    counts_by_name = _count(packed) | {"n_random_entities": grafted.n_random}
    return PretrainResult(run, run / "encoder", _describe(packed), counts_by_name, trained)


def example_transforms(
    objectives: Mapping[str, Objective],
    knowledge: KnowledgeConfig | None,
    lm: Any,
    graph: EntityGraph | None = None,
) -> list[ExampleTransform]:
    """Return the transforms of examples: objectives, and the visibility of entities.

    A model that already has knowledge layers, in a recipe without ``[knowledge]``, receives the
    entities of masked mentions and of half the others.
    """
    if not takes_entity_inputs(lm.base_model):
        return [*objectives.values()]
    predicted = graph.neighbours if graph and MaskedNeighbour.name in objectives else None
    visibility = knowledge.entity_visibility if knowledge else MIXED
    return [*objectives.values(), EntityVisibility(visibility, predicted)]


def _table(
    config: KnowledgeConfig | None, packed: PackedText, kb: KnowledgeBase | None, *, grows: bool
) -> tuple[Sequence[str], npt.NDArray[np.int64], EntityGraph | None]:
    """Return the entities of the table, their frequencies, and the graph if the recipe has one."""
    ids, counts = packed.entities, packed.entity_counts
    if config is None:
        return ids, counts, None
    if config.neighbours is None:
        return (*(with_vectors(config, ids, counts, kb) if grows else (ids, counts)), None)
    around = read_neighbourhood(config, ids, counts, kb, grows=grows)
    return around.ids, around.graph.counts, around.graph


@torch.no_grad()
def _try_out(text_training: TextTraining, source: TextBatches) -> None:
    """Compute a loss, so that an objective that does not fit raises before the run starts."""
    text_training.loss(text_training.model, next(source.batches(0)), {})


def _describe(packed: PackedText) -> str:
    return (
        f"{packed.n_tokens:,} tokens in {len(packed):,} sequences, with "
        f"{len(packed.entities):,} entities"
    )


def _count(packed: PackedText) -> dict[str, Any]:
    return {
        "text": {
            "n_sequences": len(packed),
            "n_tokens": packed.n_tokens,
            "n_entities": len(packed.entities),
            **packed.counts,
        }
    }
