"""The ranker's network, small enough for numpy: no torch is needed to link with it."""

from __future__ import annotations

from dataclasses import dataclass
from math import erf, sqrt
from pathlib import Path

import numpy as np
import numpy.typing as npt

from biograft.errors import StoreError

F32 = npt.NDArray[np.float32]
_erf = np.vectorize(erf, otypes=[np.float64])


@dataclass(frozen=True)
class Network:
    """Networks with one hidden layer, side by side; their scores are averaged."""

    mean: F32  # (features,)
    scale: F32  # (features,)
    inner: F32  # (networks, hidden, features)
    inner_bias: F32  # (networks, hidden)
    outer: F32  # (networks, hidden)

    def score(self, features: F32) -> F32:
        """Score candidates: (candidates, features) to (candidates,)."""
        given = (features - self.mean) / self.scale
        states = np.einsum("cf,nhf->nch", given, self.inner) + self.inner_bias[:, None]
        active = states * 0.5 * (1 + _erf(states / sqrt(2)))  # GELU
        scores: F32 = np.einsum("nch,nh->c", active, self.outer) / len(self.outer)
        return scores

    def save(self, folder: Path) -> None:
        """Write the weights as numpy arrays."""
        for name, array in self.__dict__.items():
            np.save(folder / f"{name}.npy", array)

    @classmethod
    def load(cls, folder: Path, n_features: int) -> Network:
        """Read the weights, refusing what does not fit together."""
        try:
            arrays = {name: np.load(folder / f"{name}.npy") for name in cls.__annotations__}
        except (OSError, ValueError, EOFError) as error:
            raise StoreError(f"{folder}: damaged ({error}); train the linker again") from error
        if any(array.dtype != np.float32 for array in arrays.values()):
            raise StoreError(f"{folder}: damaged: weights of wrong type; train the linker again")
        network = cls(**arrays)
        n, hidden = network.inner_bias.shape if network.inner_bias.ndim == 2 else (0, 0)
        expected = [(n_features,)] * 2 + [(n, hidden, n_features), (n, hidden), (n, hidden)]
        if not n or [array.shape for array in arrays.values()] != expected:
            raise StoreError(f"{folder}: damaged: weights of wrong shapes; train the linker again")
        # a scale of infinity leaves out a feature that was always the same in training
        finite = all(np.isfinite(a).all() for name, a in arrays.items() if name != "scale")
        if not finite or not (network.scale > 0).all():
            raise StoreError(
                f"{folder}: its weights hold NaN, infinity or a scale of 0; train the linker again"
            )
        return network
