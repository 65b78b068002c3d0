"""Run a recipe of writing names: sentences about concepts, an encoder-decoder, the loop."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.kb.store import fingerprint
from biograft.nn.seq2seq import Namer
from biograft.objectives.name_examples import NamingBatches
from biograft.objectives.name_generation import NameLearning
from biograft.pretraining.recipe import Recipe
from biograft.pretraining.run import PretrainResult, hold_out
from biograft.pretraining.templates import NameTemplates, TemplateCounts
from biograft.progress import Progress
from biograft.training import Task, train
from biograft.training.processes import join_processes

_TOKENISED = 200_000
"""From how many examples, at most, a new tokenizer is learnt."""


def generate_names(
    recipe: Recipe, kb: KnowledgeBase | None, run: Path, *, resume: bool, progress: Progress
) -> PretrainResult:
    """Teach a model the names of a knowledge base; it is written to ``run/encoder``."""
    if kb is None:
        raise ConfigError(f"recipe {recipe.name}: learns the names of a knowledge base; give --kb")
    if len(recipe.objectives) > 1:
        raise ConfigError(f"recipe {recipe.name}: one objective of names is enough")
    progress.start("names")
    templates = NameTemplates(kb, recipe.stream)
    progress.start("model")
    namer = begin_namer(recipe, templates)
    (objective,) = (config.build() for config in recipe.objectives.values())
    learning = NameLearning(namer, objective)
    processes, config = join_processes(), recipe.training
    learned, shown = hold_out(len(templates), config.seed)
    make = partial(NamingBatches, templates, config.batch_size, seed=config.seed)
    source = make(
        rank=processes.process_index,
        world=processes.num_processes,
        bucket_batches=recipe.stream.bucket_batches,
        lengths=learning.lengths,
        numbers=learned,
    )
    held_out = list(learning.source(make(numbers=shown)).batches(0)) if len(shown) else []
    task = Task(
        model=learning.model,
        source=learning.source(source),
        compute_loss=learning.loss,
        counts=learning.counts,
        evaluate=partial(learning.evaluate, held_out, config.precision) if held_out else None,
        described=recipe.to_json(),
        provenance={
            "kb": fingerprint(kb, ("names", "definitions"), [kb.languages]),
            "encoder": namer.fingerprint(),
            "names": templates.counts.to_json(),
        },
    )
    trained = train(task, config, run, resume=resume, progress=progress)
    if processes.is_main_process:
        namer.save(run / "encoder", overwrite=True)
    counts = {"names": templates.counts.to_json()}
    return PretrainResult(run, run / "encoder", _in_words(templates.counts), counts, trained)


def begin_namer(recipe: Recipe, templates: NameTemplates) -> Namer:
    """Load the model that a recipe names, or make the new one that it describes."""
    if recipe.new is not None:
        made: Namer = recipe.new.create(templates.texts(_TOKENISED), recipe.training.seed)
        return made
    config = recipe.encoder
    return Namer.from_pretrained(config.name, max_source=config.max_length, dropout=config.dropout)


def _in_words(counts: TemplateCounts) -> str:
    return (
        f"{counts.n_names:,} names of {counts.n_concepts:,} concepts: {counts.n_defined:,} with a "
        f"definition, {counts.n_several:,} with several names, {counts.n_single:,} with one"
    )
