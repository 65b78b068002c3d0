"""What may be chosen of ranking."""

from __future__ import annotations

from dataclasses import dataclass, field

from biograft.errors import ConfigError
from biograft.tasks.config import TaskTraining

CHOICES = {"loss": ("pairwise", "listwise"), "questions": ("answered", "single")}


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingConfig:
    """What is learned of right and wrong answers, and how the model is trained.

    A training batch holds ``training.batch_size`` right answers, each with its wrong ones.
    """

    loss: str = "pairwise"
    """``pairwise``: a right answer's score is to be higher by a margin than each wrong one's;
    ``listwise``: -log p of the right answer among those drawn with it."""
    margin: float = 0.3
    """Of pairwise, between scores from 0 to 1."""
    negatives: int = 1
    """Wrong answers drawn for each right one, others in each epoch; 0: all there are."""
    questions: str = "answered"
    """``answered``: all questions with a right answer; ``single``: those with exactly one, and
    wrong ones beside it. Both for what is learned from and what is measured."""
    dropout: float = 0.1
    training: TaskTraining = field(default_factory=TaskTraining)

    def __post_init__(self) -> None:
        for name, known in CHOICES.items():
            if getattr(self, name) not in known:
                raise ConfigError(
                    f"{name}: expected one of {', '.join(known)}, found {getattr(self, name)!r}"
                )
        if not 0 < self.margin <= 1:
            raise ConfigError(f"margin: expected a number above 0, at most 1, found {self.margin}")
        if self.negatives < 0:
            raise ConfigError(f"negatives: expected at least 0, found {self.negatives}")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout: expected a share below 1, found {self.dropout}")
