"""Run a pre-training recipe; held-out examples of its stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from biograft.errors import MissingExtraError
from biograft.kb import KnowledgeBase
from biograft.progress import Progress
from biograft.registry import load_object
from biograft.training.pretraining.recipe import PretrainingRecipe
from biograft.training.run_folder import sole_run

if TYPE_CHECKING:
    from biograft.training import TrainingResult

Ints = npt.NDArray[np.int64]
_HELD_OUT_RATIO, _MAX_HELD_OUT = 0.01, 256


def hold_out(n: int, seed: int) -> tuple[Ints, Ints]:
    """Split the indices of examples into training and held-out ones."""
    n_held_out = min(int(n * _HELD_OUT_RATIO), _MAX_HELD_OUT)
    order = np.random.default_rng([seed, n]).permutation(n)
    return np.sort(order[n_held_out:]), np.sort(order[:n_held_out])


def hold_out_together(groups: Ints, seed: int) -> tuple[Ints, Ints]:
    """Split the indices of examples so that those of one group stay together.

    Copies of a document are a group: a held-out document must not be in training in another form.
    """
    n_held_out = min(int(len(groups) * _HELD_OUT_RATIO), _MAX_HELD_OUT)
    known, sizes = np.unique(groups, return_counts=True)
    order = np.random.default_rng([seed, len(groups)]).permutation(len(known))
    n_groups = int(np.searchsorted(np.cumsum(sizes[order]), n_held_out, side="right"))
    is_held_out = np.isin(groups, known[order[:n_groups]])
    return np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out)


@dataclass(frozen=True, slots=True)
class PretrainResult:
    """The result of running a pre-training recipe."""

    run: Path
    encoder: Path
    """Folder of the trained model; transformers loads it, and for alignment
    sentence-transformers."""
    training_data: str
    """A description of the training data."""
    counts: Mapping[str, Any]
    """The counts of the training data."""
    training: TrainingResult

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain values."""
        trained = self.training
        return {
            "run": str(self.run),
            "encoder": str(self.encoder),
            **self.counts,
            "step": trained.step,
            "n_steps": trained.n_steps,
            "finished": trained.finished,
            "batch": str(trained.batch),
            "loss": trained.loss,
            "seconds": round(trained.seconds, 3),
        }


_PRETRAINERS = {
    "synonym_pairs": "alignment:pretrain_alignment",
    "annotated_text": "language_modelling:pretrain_language_model",
    "name_templates": "generation:pretrain_generation",
}
"""The training function for each kind of stream, in a module of this package."""


def pretrain(
    recipe: str | Path | PretrainingRecipe,
    kb: KnowledgeBase | None,
    out: str | Path,
    *,
    resume: bool = False,
    progress: Progress | None = None,
) -> PretrainResult:
    """Train the encoder of a recipe in the folder ``out``, or resume a run there.

    The encoder is also written to ``out/encoder`` when the time limit ends a session before the
    last step; see ``training.finished``.
    """
    if not isinstance(recipe, PretrainingRecipe):
        recipe = PretrainingRecipe.load(recipe)
    try:
        run = load_object(f"{__package__}.{_PRETRAINERS[recipe.stream_kind]}")
    except ModuleNotFoundError as error:
        raise MissingExtraError("models", "training an encoder") from error
    progress = progress or Progress(enabled=False)
    with sole_run(Path(out)):
        result: PretrainResult = run(recipe, kb, Path(out), resume=resume, progress=progress)
        return result
