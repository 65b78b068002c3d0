"""The plainest head: a linear layer over the states of a few tokens, side by side."""

from __future__ import annotations

from torch import Tensor, nn

from biograft.tasks.network import Outputs

_SPREAD = 0.02


class LinearHead(nn.Module):
    """Scores from the states of so many places."""

    def __init__(self, width: int, n_scores: int, n_places: int = 1) -> None:
        super().__init__()
        self.linear = nn.Linear(n_places * width, n_scores)
        nn.init.normal_(self.linear.weight, std=_SPREAD)
        nn.init.zeros_(self.linear.bias)

    def forward(self, states: Tensor) -> Outputs:
        """Score sequences: (sequences, places, width) to (sequences, scores)."""
        return (self.linear(states.flatten(1)),)
