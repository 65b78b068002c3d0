"""What training a linker gave, whichever kind it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from biograft.training import TrainingResult


@dataclass(frozen=True, slots=True)
class TrainedLinker:
    """What a run gave, and how it does on the mentions held out."""

    run: Path
    model: Path
    """Folder of the linker."""
    training: TrainingResult
    report: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Give the result as plain values."""
        places = {"run": str(self.run), "model": str(self.model)}
        return {**places, "finished": self.training.finished, **self.figures()}

    def figures(self) -> dict[str, Any]:
        """Give what is told of the run itself."""
        return {
            "step": self.training.step,
            "n_steps": self.training.n_steps,
            "loss": self.training.loss,
            "seconds": round(self.training.seconds, 3),
            **self.report,
        }
