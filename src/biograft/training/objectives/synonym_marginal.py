"""Synonym marginalisation of BioSyn (Sung et al. 2020): scores of names for mentions, and the loss.

The loss is the negative logarithm of the summed probability of all names of the right concept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from biograft.training.objectives.base import Loss, Objective
from biograft.training.objectives.configs import SynonymMarginalConfig
from biograft.training.objectives.examples import Setting


class LexicalWeight(nn.Module):
    """The learned weight of lexical scores beside the similarity of vectors."""

    def __init__(self, config: SynonymMarginalConfig) -> None:
        super().__init__()
        self.factor = config.lexical_rate_factor
        self.slow = nn.Parameter(torch.tensor(config.lexical_weight / self.factor))

    def forward(self) -> Tensor:
        """Return the weight.

        Adam moves every parameter by the learning rate, whatever the size of its gradient. So the
        parameter is the weight divided by the factor; its gradient is that of the weight itself,
        so that it does not dominate a bound on the gradient's norm.
        """
        return self.factor * self.slow.detach() + (self.slow - self.slow.detach())


class MarginalObjective(Objective):
    """Base of marginal losses: the scores of names for texts, and which of them are ``gold``."""

    def scores(self, states: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
        """Compute the scores of names (texts, names), lowest where a name is no candidate.

        Args:
            states: Vectors of the texts of a batch.
            batch: Its arrays.
        """
        raise NotImplementedError

    def loss(self, states: Tensor, batch: Mapping[str, Tensor]) -> Loss:
        """Compute the mean over texts with a gold candidate."""
        return marginal_loss(self.scores(states, batch), batch["gold"])


class SynonymMarginal(MarginalObjective):
    """Marginal loss over the candidates of each mention, with a learned lexical weight.

    ``states`` of the loss are the vectors of the mentions, then those of all names. ``batch`` has
    ``names``, the index of each candidate among the names, -1 where there is none, and their
    ``lexical`` scores: (mentions, candidates).
    """

    name = "marginal"
    head: LexicalWeight

    def __init__(self, config: SynonymMarginalConfig, setting: Setting | None = None) -> None:
        super().__init__(config, setting)
        self.head = LexicalWeight(config)

    def counts(self, batch: Any) -> Mapping[str, int]:
        """Count the mentions with a gold candidate, which alone have a loss, or all of them."""
        with_gold = int(batch.arrays["gold"].any(1).sum())
        return {"": with_gold, "with_gold": len(batch), "gold_found": len(batch)}

    def scores(self, states: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
        """Compute scores (mentions, candidates), lowest where there is no candidate."""
        names, vectors = batch["names"], unit_rows(states, self.config)
        with torch.autocast(vectors.device.type, enabled=False):
            near = vectors[: len(names)] @ vectors[len(names) :].T  # (mentions, names)
            near = near.gather(1, names.clamp_min(0))  # (mentions, candidates)
            scores = (near + self.head() * batch["lexical"]) / self.config.temperature
        filled: Tensor = scores.masked_fill(names < 0, _lowest(scores))
        return filled

    def loss(self, states: Tensor, batch: Mapping[str, Tensor]) -> Loss:
        """Compute the mean over mentions with a gold candidate."""
        loss, statistics = super().loss(states, batch)
        return loss, {**statistics, "gold_found": float(batch["gold_found"].float().mean())}


class BankMarginal(MarginalObjective):
    """Marginal loss over all names of a bank: most by cached vectors, some encoded again.

    ``states`` of the loss are vectors of texts; the last are the names of the rows ``fresh`` of the
    ``bank`` (names, width), whose cached vectors are not used. A name that is ``withheld`` is no
    candidate of a text: (texts, names).
    """

    name = "bank"
    compares = True

    def scores(self, states: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
        """Compute scores (texts, names), lowest where a name is withheld from a text."""
        fresh, vectors = batch["fresh"], unit_rows(states, self.config)
        with torch.autocast(vectors.device.type, enabled=False):
            new = vectors @ vectors[len(vectors) - len(fresh) :].T  # (texts, fresh)
            scores = (vectors @ batch["bank"].T).index_copy(1, fresh, new)
            scores = scores / self.config.temperature
        filled: Tensor = scores.masked_fill(batch["withheld"], _lowest(scores))
        return filled


def unit_rows(vectors: Tensor, config: SynonymMarginalConfig) -> Tensor:
    """Return vectors in float32, of length 1 for cosines.

    Args:
        vectors: (texts, width)
        config: Similarity of vectors.
    """
    vectors = vectors.float()
    return normalize(vectors, dim=1) if config.similarity == "cosine" else vectors


def marginal_loss(scores: Tensor, gold: Tensor) -> Loss:
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
