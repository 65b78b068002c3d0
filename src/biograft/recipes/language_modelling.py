"""Run a recipe of reading: annotated text, a masked language model, perhaps with knowledge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.nn.knowledge.finding import is_told
from biograft.objectives.graph import GraphOfEntities
from biograft.objectives.setting import Setting
from biograft.objectives.showing import HIDDEN, Showing
from biograft.progress import Progress
from biograft.recipes.grafting import graft, hash_knowledge, load_start, save_model
from biograft.recipes.holding_out import hold_out, hold_out_together
from biograft.recipes.knowledge import KnowledgeConfig
from biograft.recipes.neighbourhoods import read_neighbourhood, with_vectors
from biograft.recipes.pretraining import PretrainResult
from biograft.recipes.recipe import Recipe
from biograft.recipes.text_model import Reading, TextModel
from biograft.streams.annotated import PackedText, TextBatches, open_packed
from biograft.training import Task, train
from biograft.training.processes import join_processes


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
