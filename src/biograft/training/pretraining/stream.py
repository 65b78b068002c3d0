"""Pre-training on any stream: examples, the model that reads them, objectives, the loop.

A kind of stream is a ``Stream``: pairs of texts for an encoder, running text for a masked language
model, sentences for an encoder-decoder. What the examples of a kind are is its own class
(``STREAMS``), so that a new stream of a kind is one class with a configuration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from biograft.arrays import Ints
from biograft.kb import KnowledgeBase
from biograft.progress import Progress
from biograft.registry import load_object
from biograft.training import TrainingResult, train
from biograft.training.batches import EpochOrder, Lengths, OrderedBatches
from biograft.training.objectives.base import Objective
from biograft.training.objectives.examples import Setting
from biograft.training.objectives.model import ObjectiveModel
from biograft.training.pretraining.recipe import PretrainingRecipe, PretrainResult
from biograft.training.processes import join_processes

KINDS = {
    "synonym_pairs": "alignment:PairStream",
    "annotated_text": "language_modelling:TextStream",
    "name_templates": "generation:NameStream",
}
"""The class of each kind of stream, in a module of this package."""
_TRIED = 2
"""Examples whose loss is computed first, so that what does not fit raises before the run starts."""


class Stream:
    """A kind of stream: what a recipe learns from, and the model that reads it.

    Args:
        recipe: The recipe; its stream is of this kind.
        kb: Knowledge base of the examples, where there is one.
        run: Folder of the run.
        progress: Progress of reading.
    """

    setting: Setting
    """Properties of model and data that objectives are built with."""
    rows: Ints
    """The examples to train on."""
    lengths: Lengths | None = None
    """The lengths of all examples, where they may be grouped by length."""
    body: Sequence[nn.Parameter] = ()
    """The parameters of the model without its heads."""
    about: str
    """A description of the training data."""
    counts: Mapping[str, Any]
    """The counts of the training data."""
    provenance: Mapping[str, Any]
    """The inputs of the run, by hashes."""
    objectives: Mapping[str, Objective]
    """The objectives, once they are built."""

    def __init__(
        self, recipe: PretrainingRecipe, kb: KnowledgeBase | None, run: Path, progress: Progress
    ) -> None:
        self.recipe, self.kb, self.run = recipe, kb, run
        self.open(progress)

    def open(self, progress: Progress) -> None:
        """Open data and model."""
        raise NotImplementedError

    def reader(self) -> nn.Module:
        """Return the module that computes the states of a batch."""
        raise NotImplementedError

    def batch(self, epoch: int, indices: Sequence[int]) -> Any:
        """Make a batch of some examples as they are in an epoch.

        Args:
            epoch: Number of the epoch.
            indices: Indices of the examples.
        """
        raise NotImplementedError

    def held_out(self, size: int) -> list[Any]:
        """Return batches of this size that the training is evaluated on; none: it is not."""
        return []

    def measure(self) -> dict[str, Any]:
        """Return further results of an evaluation."""
        return {}

    def save(self, trained: TrainingResult) -> None:
        """Write the trained model to ``run/encoder``."""
        raise NotImplementedError


def pretrain_on_stream(
    recipe: PretrainingRecipe,
    kb: KnowledgeBase | None,
    run: Path,
    *,
    resume: bool,
    progress: Progress,
) -> PretrainResult:
    """Train the model of a recipe on its stream; it is written to ``run/encoder``.

    Args:
        recipe: The recipe.
        kb: Knowledge base, for streams that need one.
        run: Folder of the run.
        resume: Continue from its last checkpoint.
        progress: Progress of training.
    """
    processes, config = join_processes(), recipe.training
    kind = load_object(f"{__package__}.{KINDS[recipe.stream.stream_kind]}")
    stream: Stream = kind(recipe, kb, run, progress)
    stream.objectives = {
        name: each.build(stream.setting) for name, each in recipe.objectives.items()
    }
    model = ObjectiveModel(stream.reader(), stream.objectives)
    order = EpochOrder.for_training(
        stream.rows,
        config,
        divisible=model.divisible,
        lengths=stream.lengths,
        bucket_batches=recipe.stream.bucket_batches,
        called="stream: examples:",
    )
    with torch.no_grad():
        model.eval()(stream.batch(0, stream.rows[:_TRIED].tolist()))
    held_out = stream.held_out(order.batch_size)

    def evaluate() -> dict[str, Any]:
        return {**stream.measure(), **model.evaluate(held_out, config.precision)}

    task = model.task(
        OrderedBatches(order, stream.batch, together=not model.divisible),
        evaluate=evaluate if held_out else None,
        described=recipe.to_json(),
        provenance=stream.provenance,
        may_shard=True,
        body=stream.body,
    )
    trained = train(task, config, run, resume=resume, progress=progress)
    if processes.is_main_process:
        stream.save(trained)
    return PretrainResult(run, run / "encoder", stream.about, stream.counts, trained)
