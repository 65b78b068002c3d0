"""The scores of names for mentions, and the loss that marginalises over a concept's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from biograft.nn import TextEncoder
from biograft.nn.batches import USUAL_LENGTH, token_batches
from biograft.objectives.configs import SynonymMarginalConfig

_AT_ONCE = 64 * USUAL_LENGTH
"""How many tokens go through the encoder in one piece; longer texts are padded apart."""


class Pieces(NamedTuple):
    """Texts in tokenised pieces of like length, and where each text came to stand."""

    tokens: list[dict[str, Tensor]]
    places: Tensor  # (texts,): row in the pieces, one after the other


class NameScorer(nn.Module):
    """Scores names for mentions with an encoder and the weight of the lexical score.

    One module, so that the encoder and the weight are saved, resumed and shared as one.
    """

    def __init__(self, encoder: TextEncoder, config: SynonymMarginalConfig) -> None:
        super().__init__()
        self.model: nn.Module = encoder.model
        self.config, self._encoder = config, encoder
        self.slow_weight = nn.Parameter(torch.tensor(config.lexical_weight / config.pace))

    @property
    def lexical_weight(self) -> Tensor:
        """The weight of lexical scores.

        Adam moves every parameter by the learning rate, whatever the size of its gradient. So
        what is kept is the weight over the pace; its gradient is that of the weight itself, so
        that a bound on the gradient's norm is not used up by it.
        """
        slow = self.slow_weight
        return self.config.pace * slow.detach() + (slow - slow.detach())

    def forward(self, pieces: Pieces, names: Tensor, lexical: Tensor) -> Tensor:
        """Give scores (mentions, candidates), lowest where there is no candidate.

        The texts of ``pieces`` are the mentions, then the names; ``names`` (mentions, candidates)
        counts among the names, -1: none. ``lexical`` are scores of the same shape.
        """
        vectors = embed_pieces(self._encoder, pieces, self.config.similarity)
        with torch.autocast(vectors.device.type, enabled=False):
            near = vectors[: len(names)] @ vectors[len(names) :].T  # (mentions, names)
            names, lexical = names.to(near.device), lexical.to(near.device)
            near = near.gather(1, names.clamp_min(0))  # (mentions, candidates)
            scores = (near + self.lexical_weight * lexical) / self.config.temperature
        return scores.masked_fill(names < 0, _lowest(scores))


class BankScorer(nn.Module):
    """Scores all names of a bank for mentions: most by kept vectors, some encoded afresh."""

    def __init__(self, encoder: TextEncoder, config: SynonymMarginalConfig) -> None:
        super().__init__()
        self.model: nn.Module = encoder.model
        self.config, self._encoder = config, encoder

    def forward(self, pieces: Pieces, bank: Tensor, fresh: Tensor, withheld: Tensor) -> Tensor:
        """Give scores (texts, names), lowest where a name is withheld from a text.

        ``bank`` (names, width) holds vectors of the length that the similarity asks for. The last
        texts of ``pieces`` are the names of the rows ``fresh``, which count as encoded now.
        """
        vectors = embed_pieces(self._encoder, pieces, self.config.similarity)
        fresh, withheld = fresh.to(vectors.device), withheld.to(vectors.device)
        with torch.autocast(vectors.device.type, enabled=False):
            anew = vectors @ vectors[len(vectors) - len(fresh) :].T  # (texts, fresh)
            scores = (vectors @ bank.T).index_copy(1, fresh, anew) / self.config.temperature
        return scores.masked_fill(withheld, _lowest(scores))


def embed_pieces(encoder: TextEncoder, pieces: Pieces, similarity: str) -> Tensor:
    """Give the vectors of texts in their order, in 32 bits, of length 1 for cosines."""
    embedded = [encoder.embed(tokens) for tokens in pieces.tokens]
    vectors = torch.cat(embedded)[pieces.places.to(embedded[0].device)].float()
    return normalize(vectors, dim=1) if similarity == "cosine" else vectors


def cut_in_pieces(encoder: TextEncoder, texts: Sequence[str]) -> Pieces:
    """Tokenise texts in pieces of like length, so that little is padded."""
    tokens = encoder.tokenize(texts)
    lengths = tokens["attention_mask"].sum(1).numpy()
    pieces, order = [], []
    for rows in token_batches(lengths, _AT_ONCE):
        width = int(lengths[rows].max())
        pieces.append({key: value[rows, :width] for key, value in tokens.items()})
        order.append(rows)
    return Pieces(pieces, torch.from_numpy(np.argsort(np.concatenate(order))))


def marginal_loss(scores: Tensor, gold: Tensor) -> tuple[Tensor, Mapping[str, float]]:
    """Give the mean of -ln(sum of the probabilities of gold candidates), and statistics.

    Probabilities are the softmax of a mention's scores. Mentions without a gold candidate teach
    nothing and are not counted. Both are (mentions, candidates); ``gold`` is bool.
    """
    taught = gold.any(1)
    right = scores.masked_fill(~gold, _lowest(scores)).logsumexp(1)
    losses = (scores.logsumexp(1) - right) * taught
    n_taught = taught.sum().clamp_min(1)
    first = gold.gather(1, scores.argmax(1, keepdim=True)).squeeze(1)
    with torch.no_grad():
        probability = (-losses).exp() * taught
        statistics = {
            "taught": float(taught.float().mean()),
            "gold_probability": float(probability.sum() / n_taught),
            "gold_first": float(first.sum() / n_taught),
        }
    return losses.sum() / n_taught, statistics


def _lowest(scores: Tensor) -> float:
    """Give a score that no probability is left for; -inf would have a gradient of NaN."""
    return torch.finfo(scores.dtype).min / 4
