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

from biograft.errors import ConfigError
from biograft.training.objectives.base import Loss, Objective, TensorBatch, TextStates, to_float32
from biograft.training.objectives.configs import NameGeometryConfig
from biograft.training.objectives.examples import Setting, TextBatch


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
    """Keep the cosines of the names of mentions as they were before training."""

    name = "name_geometry"
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
        mentions = batch.mentions[: self.config.max_names]
        if len(mentions) < 2:
            return states.final.new_zeros((), dtype=torch.float32), {"loss": 0.0}
        tokens, mask = self._names(batch, mentions)
        ours, theirs = (cosines(of(tokens, mask), mask) for of in (encode, self.head))
        n_pairs = len(mentions) * (len(mentions) - 1)
        loss = (ours - theirs).square().sum() / n_pairs  # the diagonal is 0
        return self.config.weight * loss, {"loss": float(loss.detach())}

    def _names(self, batch: TensorBatch, mentions: Tensor) -> tuple[Tensor, Tensor]:
        """Return the original tokens of mentions between special ones, and their mask."""
        original = batch.original_tokens
        sequence, first, last = mentions.unbind(1)
        lengths = last - first + 1
        positions = torch.arange(int(lengths.max()) + 2, device=mentions.device)
        inside = first[:, None] + positions[None, :] - 1  # (names, length)
        tokens = original[sequence[:, None], inside.clamp(0, original.shape[1] - 1)]
        tokens[:, 0] = self.ends[0]
        tokens[torch.arange(len(tokens)), lengths + 1] = self.ends[1]
        return tokens, (positions[None, :] <= lengths[:, None] + 1).long()


def cosines(states: Tensor, mask: Tensor) -> Tensor:
    """Compute the cosines (names, names) of the means of states over tokens.

    Args:
        states: States of the tokens: (names, length, width).
        mask: 1 where there is a token: (names, length).
    """
    weights = mask.unsqueeze(-1).float()
    vectors = (to_float32(states) * weights).sum(1) / weights.sum(1)
    with torch.autocast(states.device.type, enabled=False):
        rows = normalize(vectors, dim=1)
        return rows @ rows.T
