"""Synonym marginalisation of BioSyn (Sung et al. 2020): scores of names for mentions, and the loss.

The loss is the negative logarithm of the summed probability of all names of the right concept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from biograft.models import TextEncoder
from biograft.models.batches import USUAL_LENGTH, token_batches
from biograft.training.objectives.configs import SynonymMarginalConfig

_BATCH_TOKENS = 64 * USUAL_LENGTH
"""The tokens of one batch of the encoder."""


class TokenizedTexts(NamedTuple):
    """Texts tokenised in batches of similar length."""

    batches: list[dict[str, Tensor]]
    rows: Tensor  # (texts,): the row of each text in the concatenated batches


class NameScorer(nn.Module):
    """Scores names for mentions with an encoder and the weight of the lexical score.

    One module, so that the encoder and the weight are saved, resumed and shared as one.

    Args:
        encoder: Encoder in training.
        config: Settings of the objective.
    """

    def __init__(self, encoder: TextEncoder, config: SynonymMarginalConfig) -> None:
        super().__init__()
        self.model: nn.Module = encoder.model
        self.config, self._encoder = config, encoder
        self.slow_weight = nn.Parameter(
            torch.tensor(config.lexical_weight / config.lexical_rate_factor)
        )

    @property
    def lexical_weight(self) -> Tensor:
        """The weight of lexical scores.

        Adam moves every parameter by the learning rate, whatever the size of its gradient. So the
        parameter is the weight divided by the factor; its gradient is that of the weight itself,
        so that it does not dominate a bound on the gradient's norm.
        """
        slow = self.slow_weight
        return self.config.lexical_rate_factor * slow.detach() + (slow - slow.detach())

    def forward(self, texts: TokenizedTexts, names: Tensor, lexical: Tensor) -> Tensor:
        """Compute scores (mentions, candidates), lowest where there is no candidate.

        Args:
            texts: The mentions, then the names.
            names: Index of each candidate among the names, -1: none: (mentions, candidates).
            lexical: Lexical scores, likewise.
        """
        vectors = embed_texts(self._encoder, texts, self.config.similarity)
        with torch.autocast(vectors.device.type, enabled=False):
            near = vectors[: len(names)] @ vectors[len(names) :].T  # (mentions, names)
            names, lexical = names.to(near.device), lexical.to(near.device)
            near = near.gather(1, names.clamp_min(0))  # (mentions, candidates)
            scores = (near + self.lexical_weight * lexical) / self.config.temperature
        return scores.masked_fill(names < 0, _lowest(scores))


class BankScorer(nn.Module):
    """Scores all names of a bank for mentions: most by cached vectors, some encoded again.

    Args:
        encoder: Encoder in training.
        config: Similarity and temperature.
        gather: Joins the vectors of all processes, where the texts are those of one.
    """

    def __init__(
        self,
        encoder: TextEncoder,
        config: SynonymMarginalConfig,
        gather: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        super().__init__()
        self.model: nn.Module = encoder.model
        self.config, self._encoder, self._gather = config, encoder, gather

    def forward(
        self, texts: TokenizedTexts, bank: Tensor, fresh: Tensor, withheld: Tensor
    ) -> Tensor:
        """Compute scores (texts, names), lowest where a name is withheld from a text.

        Args:
            texts: The texts; the last are the names of the rows ``fresh``.
            bank: Cached vectors, of length 1 for cosines: (names, width).
            fresh: Rows of the bank whose cached vectors are not used.
            withheld: True where a name is no candidate of a text: (texts, names).
        """
        vectors = embed_texts(self._encoder, texts, self.config.similarity)
        if self._gather is not None:
            vectors = self._gather(vectors)
        fresh, withheld = fresh.to(vectors.device), withheld.to(vectors.device)
        with torch.autocast(vectors.device.type, enabled=False):
            new = vectors @ vectors[len(vectors) - len(fresh) :].T  # (texts, fresh)
            scores = (vectors @ bank.T).index_copy(1, fresh, new) / self.config.temperature
        return scores.masked_fill(withheld, _lowest(scores))


def embed_texts(encoder: TextEncoder, texts: TokenizedTexts, similarity: str) -> Tensor:
    """Embed texts in their order, in float32, with length 1 for cosines.

    Args:
        encoder: Encoder in training.
        texts: Texts in batches of similar length.
        similarity: ``cosine`` or ``dot``.
    """
    embedded = [encoder.embed(batch) for batch in texts.batches]
    vectors = torch.cat(embedded)[texts.rows.to(embedded[0].device)].float()
    return normalize(vectors, dim=1) if similarity == "cosine" else vectors


def tokenize_in_batches(
    encoder: TextEncoder, texts: Sequence[str], n_queries: int = 0
) -> TokenizedTexts:
    """Tokenise texts in batches of similar length, with little padding.

    Args:
        encoder: Encoder with its tokenizer.
        texts: Texts.
        n_queries: The number of texts, from the first, that are searched for, not searched.
    """
    tokens = encoder.tokenize(texts, n_queries)
    lengths = tokens["attention_mask"].sum(1).numpy()
    batches, order = [], []
    for rows in token_batches(lengths, _BATCH_TOKENS):
        width = int(lengths[rows].max())
        batches.append({key: value[rows, :width] for key, value in tokens.items()})
        order.append(rows)
    return TokenizedTexts(batches, torch.from_numpy(np.argsort(np.concatenate(order))))


def marginal_loss(scores: Tensor, gold: Tensor) -> tuple[Tensor, Mapping[str, float]]:
    """Compute the mean of -ln(sum of the probabilities of gold candidates), and statistics.

    Probabilities are the softmax of a mention's scores. Mentions without a gold candidate do not
    count.

    Args:
        scores: Scores: (mentions, candidates).
        gold: Whether a candidate is correct: (mentions, candidates).
    """
    counted = gold.any(1)
    of_gold = scores.masked_fill(~gold, _lowest(scores)).logsumexp(1)
    losses = (scores.logsumexp(1) - of_gold) * counted
    n_counted = counted.sum().clamp_min(1)
    first = gold.gather(1, scores.argmax(1, keepdim=True)).squeeze(1)
    with torch.no_grad():
        probability = (-losses).exp() * counted
        statistics = {
            "with_gold": float(counted.float().mean()),
            "gold_probability": float(probability.sum() / n_counted),
            "gold_first": float(first.sum() / n_counted),
        }
    return losses.sum() / n_counted, statistics


def _lowest(scores: Tensor) -> float:
    """Return a score with a probability of 0; -inf would have a gradient of NaN."""
    return torch.finfo(scores.dtype).min / 4
