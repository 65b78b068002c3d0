"""Softmax of mentions over entities: over the whole table in parts, or over a sample."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint

from biograft.objectives.half_precision import in_single


def full_losses(
    queries: Tensor, table: Tensor, gold: Tensor, max_scores: int
) -> tuple[Tensor, ...]:
    """Give -ln softmax(q . E)[gold] of each mention, and whether gold scored best (KeBioLM 10).

    At most ``max_scores`` scores are held at once: in the backward pass a part is computed anew.
    """
    n_rows = max(1, max_scores // len(table))
    if len(queries) <= n_rows:
        return _losses(queries, table, gold)
    parts = [
        checkpoint(_losses, some, table, golds, use_reentrant=False)
        for some, golds in zip(torch.split(queries, n_rows), torch.split(gold, n_rows), strict=True)
    ]
    return torch.cat([losses for losses, _ in parts]), torch.cat([right for _, right in parts])


def sampled_losses(
    queries: Tensor, table: Tensor, gold: Tensor, sample: Tensor, log_rates: Tensor
) -> tuple[Tensor, Tensor]:
    """Give the losses over gold and a sample, and whether gold scored best among them.

    ``sample`` (n,) are entities drawn with replacement and ``log_rates`` (n,) the logarithms of
    how often each was to be expected, n Q(e). Taken off the scores, they make the sum of
    exponentials over gold and sample right in expectation: a sampled entity stands for 1 / n Q(e)
    of its kind. Gold stands for itself and is left out where it was sampled too.
    """
    own = (queries * table[gold]).sum(1, keepdim=True)  # (mentions, 1)
    others = queries @ table[sample].T  # (mentions, n)
    hit = sample[None, :] == gold[:, None]
    corrected = (in_single(others) - log_rates).masked_fill(hit, -torch.inf)
    scores = torch.cat([in_single(own), corrected], 1)
    losses = cross_entropy(scores, torch.zeros_like(gold), reduction="none")
    best = in_single(others).detach().masked_fill(hit, -torch.inf).amax(1)
    return losses, in_single(own).detach()[:, 0] > best


def draw_entities(rates: Tensor, n: int) -> Tensor:
    """Draw entities with replacement by their running sums of rates (entities,)."""
    places = torch.rand(n, dtype=rates.dtype, device=rates.device) * rates[-1]
    return torch.searchsorted(rates, places, right=True).clamp_max(len(rates) - 1)


def _losses(queries: Tensor, table: Tensor, gold: Tensor) -> tuple[Tensor, Tensor]:
    scores = in_single(queries @ table.T)  # (mentions, entities)
    right = scores.detach().argmax(1) == gold
    return cross_entropy(scores, gold, reduction="none"), right
