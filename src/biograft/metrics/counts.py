"""Precision, recall and F1 from counts of right, wrong and missed answers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Counts:
    """How many answers were right, how many wrong, how many gold ones were missed.

    What would be a division by zero is 0: without answers the precision, without gold the recall.
    """

    right: int = 0
    wrong: int = 0
    missed: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.right + other.right, self.wrong + other.wrong, self.missed + other.missed
        )

    @property
    def precision(self) -> float:
        """Share of the answers that are right."""
        return self.right / (self.right + self.wrong) if self.right else 0.0

    @property
    def recall(self) -> float:
        """Share of the gold answers that were given."""
        return self.right / (self.right + self.missed) if self.right else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return 2 * self.right / (2 * self.right + self.wrong + self.missed) if self.right else 0.0
