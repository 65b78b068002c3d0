"""Pre-train an encoder-decoder to generate names from sentences about concepts (GenBioEL)."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.kb.fingerprints import fingerprint
from biograft.models.seq2seq import Seq2SeqModel
from biograft.progress import Progress
from biograft.training import Task, train
from biograft.training.objectives.name_examples import NameBatches
from biograft.training.objectives.name_generation import NameGenerationTraining
from biograft.training.pretraining.recipe import PretrainingRecipe
from biograft.training.pretraining.run import PretrainResult, hold_out
from biograft.training.pretraining.templates import NameTemplates, TemplateCounts
from biograft.training.processes import join_processes

_TOKENIZER_EXAMPLES = 200_000
"""The maximum number of examples that a new tokenizer is trained on."""


def pretrain_generation(
    recipe: PretrainingRecipe,
    kb: KnowledgeBase | None,
    run: Path,
    *,
    resume: bool,
    progress: Progress,
) -> PretrainResult:
    """Train a model on the names of a knowledge base; it is written to ``run/encoder``."""
    if kb is None:
        raise ConfigError(f"recipe {recipe.name}: needs the names of a knowledge base; give --kb")
    if len(recipe.objectives) > 1:
        raise ConfigError(
            f"recipe {recipe.name}: expected one objective of name generation, found several"
        )
    processes, config = join_processes(), recipe.training
    plan = config.plan_batch(processes.num_processes)
    progress.start("names")
    templates = NameTemplates(kb, recipe.stream)
    progress.start("model")
    seq2seq = load_or_create_model(recipe, templates)
    (objective,) = (config.build() for config in recipe.objectives.values())
    training = NameGenerationTraining(seq2seq, objective)
    train_indices, held_out_indices = hold_out(len(templates), config.seed)
    make = partial(NameBatches, templates, plan.size, seed=config.seed)
    source = make(
        rank=processes.process_index,
        world=processes.num_processes,
        bucket_batches=recipe.stream.bucket_batches,
        accumulate=plan.accumulate,
        lengths=training.lengths,
        indices=train_indices,
    )
    held_out = (
        list(training.source(make(indices=held_out_indices)).batches(0))
        if len(held_out_indices)
        else []
    )
    task = Task(
        model=training.model,
        source=training.source(source),
        compute_loss=training.loss,
        counts=training.counts,
        evaluate=partial(training.evaluate, held_out, config.precision) if held_out else None,
        described=recipe.to_json(),
        provenance={
            "kb": fingerprint(kb, ("names", "definitions"), [kb.languages]),
            "encoder": seq2seq.fingerprint(),
            "names": templates.counts.to_json(),
        },
        may_shard=True,
    )
    trained = train(task, config, run, resume=resume, progress=progress)
    if processes.is_main_process:
        seq2seq.save_pretrained(run / "encoder", overwrite=True)
    counts = {"names": templates.counts.to_json()}
    return PretrainResult(run, run / "encoder", _describe(templates.counts), counts, trained)


def load_or_create_model(recipe: PretrainingRecipe, templates: NameTemplates) -> Seq2SeqModel:
    """Load the model of a recipe, or create the new one that it describes."""
    if recipe.new is not None:
        created: Seq2SeqModel = recipe.new.create(
            templates.texts(_TOKENIZER_EXAMPLES), recipe.training.seed
        )
        return created
    config = recipe.encoder
    return Seq2SeqModel.from_pretrained(
        config.name,
        max_source=config.max_length,
        dropout=config.dropout,
        decoder=config.decoder,
    )


def _describe(counts: TemplateCounts) -> str:
    return (
        f"{counts.n_names:,} names of {counts.n_concepts:,} concepts: {counts.n_defined:,} with a "
        f"definition, {counts.n_several:,} with several names, {counts.n_single:,} with one"
    )
