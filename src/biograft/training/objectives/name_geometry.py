"""Keep the geometry of names while a model learns from text: distillation of cosines.

The names in a batch of text are encoded alone, by the model and by a frozen copy of the model that
training started from. The loss is the mean squared difference of their cosines, as in relational
knowledge distillation (Park et al. 2019).
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize
from torch.nn.utils.rnn import pad_sequence

from biograft.errors import ConfigError
from biograft.training.objectives.base import Loss, Objective, TensorBatch, TextStates, to_float32
from biograft.training.objectives.configs import NameGeometryConfig
from biograft.training.objectives.examples import Setting, TextBatch
from biograft.training.processes import gather, gather_rows, own_part


class FrozenEncoder(nn.Module):
    """A frozen copy of the encoder that training starts from; it has no dropout."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = copy.deepcopy(encoder).requires_grad_(False)
        self.eval()

    def train(self, mode: bool = True) -> FrozenEncoder:
        """Stay in inference mode."""
        return super().train(False)

    @torch.no_grad()
    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Map tokens (names, length) to states (names, length, width).

        Args:
            tokens: Token ids: (names, length).
            mask: 1 where there is a token: (names, length).
        """
        states: Tensor = self.encoder(tokens, mask).last_hidden_state
        return states


class NameGeometry(Objective):
    """Keep the cosines of the names of mentions as they were before training.

    The names are those of a pass of all processes, each of which encodes a part of them.
    """

    name = "name_geometry"
    gathered = True
    head: FrozenEncoder

    def __init__(self, config: NameGeometryConfig, setting: Setting) -> None:
        if setting.encoder is None:
            raise ConfigError(
                f"objective.{self.name}: is for an encoder without knowledge layers; remove it, or "
                "[knowledge]"
            )
        self.config, self.ends = config, (setting.first, setting.separator)
        self.head = FrozenEncoder(setting.encoder)

    def count(self, batch: TextBatch) -> int:
        """Count the names that are compared; one alone has nothing to be compared with."""
        n = min(self.config.max_names, len(batch.mentions))
        return n if n > 1 else 0

    def loss(self, states: TextStates, batch: TensorBatch) -> Loss:
        """Compute the mean over pairs of names; 0 where there are fewer than two."""
        encode = states.require("encode", self.name)
        tokens, mask = self._names(batch)
        n = len(tokens)
        if n < 2:
            return states.final.new_zeros((), dtype=torch.float32), {"loss": 0.0}
        own = list(own_part(n)) if torch.is_grad_enabled() else list(range(n))
        tokens, mask = tokens[own], mask[own]
        vectors = [mean_states(of(tokens, mask), mask) for of in (encode, self.head)]
        ours, theirs = (cosines(gather_rows(each, n)) for each in vectors)
        loss = (ours - theirs).square().sum() / (n * (n - 1))  # the diagonal is 0
        return self.config.weight * loss, {"loss": float(loss.detach())}

    def _names(self, batch: TensorBatch) -> tuple[Tensor, Tensor]:
        """Return the original tokens of mentions between special ones, and their mask."""
        tokens, n_names = batch.original_tokens, self.config.max_names
        begin, end = tokens.new_tensor(self.ends).chunk(2)
        own = [
            torch.cat([begin, tokens[row, first : last + 1], end])
            for row, first, last in batch.mentions[:n_names].tolist()
        ]
        sizes = gather(tokens.new_tensor([len(name) for name in own]))
        whole = gather(torch.cat([begin[:0], *own]))
        names = list(torch.split(whole, sizes.tolist()))[:n_names] or [whole]
        masks = [torch.ones_like(name) for name in names]
        return pad_sequence(names, batch_first=True), pad_sequence(masks, batch_first=True)


def mean_states(states: Tensor, mask: Tensor) -> Tensor:
    """Compute the means of states over tokens: (names, width).

    Args:
        states: States of the tokens: (names, length, width).
        mask: 1 where there is a token: (names, length).
    """
    weights = mask.unsqueeze(-1).float()
    return (to_float32(states) * weights).sum(1) / weights.sum(1)


def cosines(vectors: Tensor) -> Tensor:
    """Compute the cosine of every pair of vectors: (names, names)."""
    with torch.autocast(vectors.device.type, enabled=False):
        rows = normalize(vectors, dim=1)
        return rows @ rows.T
