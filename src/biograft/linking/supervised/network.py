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
        network = cls(**arrays)
        n, hidden = network.outer.shape
        shapes = (network.mean.shape, network.inner.shape, network.inner_bias.shape)
        if shapes != ((n_features,), (n, hidden, n_features), (n, hidden)):
            raise StoreError(f"{folder}: damaged: weights of wrong shapes; train the linker again")
        if not all(np.isfinite(array).all() for array in arrays.values()):
            raise StoreError(f"{folder}: its weights hold NaN or infinity; train the linker again")
        return network
