"""Scores of entities as neighbours of mentions, and the loss of the true one among them."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, embedding

from biograft.objectives.masked_neighbour.edges import Edges
from biograft.objectives.masked_neighbour.head import KeptLengths, RelationProducts

_FLOOR = 1e-12
"""Of squared lengths: the slope of the root stays finite, and rounding below 0 is mended."""


class Scorer:
    """Cosines of mentions and entities, as a relation sees both, or as equation 19 prints it."""

    def __init__(self, products: RelationProducts, form: str) -> None:
        self.products, self.form = products, form
        self._kept = KeptLengths(products)

    def __call__(self, vectors: Tensor, table: Tensor, edges: Edges, columns: Tensor) -> Tensor:
        """Score the entities of columns (edges, n), rows of the table, for mentions' vectors."""
        left, left_lengths = self.products.read(vectors, edges)
        entities = embedding(columns, table)  # (edges, n, dim)
        products = (entities * left[:, None]).sum(2)  # quicker than so many small matrices
        if self.form == "eq19":
            left_lengths, lengths = left.square().sum(1), entities.square().sum(2)
        elif table.requires_grad:
            parts = [self.products.squared_lengths(e, r) for r, e in edges.parts(entities)]
            lengths = torch.cat(parts)
        else:
            parts = [self._kept.of(table, r)[rows] for r, rows in edges.parts(columns)]
            lengths = torch.cat(parts)
        return products / (_root(left_lengths)[:, None] * _root(lengths))


def losses_of_first(scores: Tensor, taken_off: Tensor) -> Tensor:
    """Give -ln of the share of column 0, the true one, after what is taken off all columns."""
    true = torch.zeros(len(scores), dtype=torch.long, device=scores.device)
    return cross_entropy(scores - taken_off, true, reduction="none")


def first_is_best(scores: Tensor, columns: Tensor) -> Tensor:
    """Say of each edge whether column 0 scored best; where it was drawn too, it is no rival.

    Best of none is not right.
    """
    again = columns[:, 1:] == columns[:, :1]
    rivals = scores[:, 1:].detach().masked_fill(again, -torch.inf).amax(1)
    return (scores[:, 0].detach() > rivals) & rivals.isfinite()


def _root(squares: Tensor) -> Tensor:
    return squares.clamp_min(_FLOOR).sqrt()
