"""What a run does not learn from, but looks at to see how far it has come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from biograft.errors import MissingExtraError
from biograft.kb import KnowledgeBase
from biograft.pretraining.recipe import Recipe
from biograft.progress import Progress
from biograft.registry import Registry
from biograft.training.run_folder import sole_run

if TYPE_CHECKING:
    from biograft.training import TrainingResult

Numbers = npt.NDArray[np.int64]
_SHARE, _MOST = 0.01, 256
"""The share of examples that is held out, and its bound."""


def hold_out(n: int, seed: int) -> tuple[Numbers, Numbers]:
    """Part the numbers of examples that are learned from and of those that are only looked at."""
    n_shown = min(int(n * _SHARE), _MOST)
    order = np.random.default_rng([seed, n]).permutation(n)
    return np.sort(order[n_shown:]), np.sort(order[:n_shown])


def hold_out_together(groups: Numbers, seed: int) -> tuple[Numbers, Numbers]:
    """Part the numbers of examples so that those of one group stay together.

    Copies of a document are a group: what is looked at must not be learned from in another form.
    """
    n_shown = min(int(len(groups) * _SHARE), _MOST)
    known, sizes = np.unique(groups, return_counts=True)
    order = np.random.default_rng([seed, len(groups)]).permutation(len(known))
    n_groups = int(np.searchsorted(np.cumsum(sizes[order]), n_shown, side="right"))
    is_shown = np.isin(groups, known[order[:n_groups]])
    return np.flatnonzero(~is_shown), np.flatnonzero(is_shown)


@dataclass(frozen=True, slots=True)
class PretrainResult:
    """What a run of a recipe gave."""

    run: Path
    encoder: Path
    """Folder of the trained model; transformers loads it, and for alignment
    sentence-transformers."""
    learned: str
    """What was learned from, in words."""
    counts: Mapping[str, Any]
    """The same in numbers, by what they count."""
    training: TrainingResult

    def to_json(self) -> dict[str, Any]:
        """Give the result as plain values."""
        trained = self.training
        return {
            "run": str(self.run),
            "encoder": str(self.encoder),
            **self.counts,
            "step": trained.step,
            "n_steps": trained.n_steps,
            "finished": trained.finished,
            "loss": trained.loss,
            "seconds": round(trained.seconds, 3),
        }


class RunRecipe(Protocol):
    """Trains what a recipe says."""

    def __call__(
        self,
        recipe: Recipe,
        kb: KnowledgeBase | None,
        run: Path,
        *,
        resume: bool,
        progress: Progress,
    ) -> PretrainResult:
        """Run the recipe in a folder."""


RUNS: Registry[RunRecipe] = Registry(
    "stream",
    {
        "synonym_pairs": ("biograft.pretraining.alignment:align", "synonym alignment"),
        "annotated_text": (
            "biograft.pretraining.language_modelling:read_on",
            "language models that go on reading, with the entities of annotated text",
        ),
        "name_templates": (
            "biograft.pretraining.generation:generate_names",
            "models that write names, from sentences about the concepts of a knowledge base",
        ),
    },
)
"""What trains, by the kind of the recipe's stream."""


def pretrain(
    recipe: Recipe,
    kb: KnowledgeBase | None,
    out: str | Path,
    *,
    resume: bool = False,
    progress: Progress | None = None,
) -> PretrainResult:
    """Train the encoder of a recipe in the folder ``out``, or go on where a run stopped there.

    The encoder is written to ``out/encoder`` also when the time of the session was over before
    the last step; ``training.finished`` says so.
    """
    try:
        run = RUNS.load(recipe.reads)
    except ModuleNotFoundError as error:
        raise MissingExtraError("models", "training an encoder") from error
    progress = progress or Progress(enabled=False)
    with sole_run(Path(out)):
        return run(recipe, kb, Path(out), resume=resume, progress=progress)
