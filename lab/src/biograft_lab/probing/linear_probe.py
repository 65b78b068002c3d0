"""Linear probe: logistic regression on frozen states, to tell what can be read off them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

Features = npt.NDArray[np.float32]
Labels = npt.NDArray[np.bool_]
_STEPS = 100


@dataclass(frozen=True)
class LinearProbe:
    """A fitted logistic regression; features are scaled to mean 0 and deviation 1 first."""

    mean: torch.Tensor
    scale: torch.Tensor
    weights: torch.Tensor
    bias: torch.Tensor

    @classmethod
    def fit(cls, features: Features, labels: Labels, *, l2: float = 1.0) -> LinearProbe:
        """Minimise the summed cross-entropy plus ``l2`` / 2 times the square of the weights.

        The optimum is unique and the start is fixed, so there is no seed.
        """
        x, y = torch.from_numpy(features), torch.from_numpy(labels).float()
        mean, scale = x.mean(0), x.std(0).clamp(min=1e-6)
        x = (x - mean) / scale
        weights = torch.zeros(x.shape[1], requires_grad=True)
        bias = torch.zeros(1, requires_grad=True)
        optimizer = torch.optim.LBFGS(
            [weights, bias], max_iter=_STEPS, line_search_fn="strong_wolfe"
        )

        def loss() -> torch.Tensor:
            optimizer.zero_grad()
            summed = binary_cross_entropy_with_logits(x @ weights + bias, y, reduction="sum")
            total = (summed + l2 / 2 * weights.square().sum()) / len(y)
            total.backward()  # type: ignore[no-untyped-call]
            return total

        optimizer.step(loss)  # type: ignore[no-untyped-call]
        return cls(mean, scale, weights.detach(), bias.detach())

    def scores(self, features: Features) -> npt.NDArray[np.float64]:
        """Return the log odds of each row."""
        x = (torch.from_numpy(features) - self.mean) / self.scale
        return np.asarray((x @ self.weights + self.bias).double().numpy())
