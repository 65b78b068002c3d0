"""What goes into a knowledge layer, and what comes out."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, slots=True)
class Told:
    """The states of a batch, and what is known of its mentions."""

    states: Tensor
    """(sequences, length, width)."""
    mask: Tensor
    """(sequences, length): 0 at padding."""
    table: Tensor
    """(entities, dim): the vectors of all entities."""
    mentions: Tensor | None = None
    """(mentions, 3): sequence, first token, last token; none: the layer finds them, if it can."""
    entities: Tensor | None = None
    """(mentions,): the row of the entity that each is linked to, -1: not told."""
    gold: bool = True
    """Whether the mentions are all that the text has, as in pre-training. Else they are names found
    in it, for layers that must be told entities, and a layer that finds mentions finds its own."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What a knowledge layer makes of it; what it does not compute is none."""

    states: Tensor
    """(sequences, length, width): the states that the next layer reads."""
    detection_scores: Tensor | None = None
    """(sequences, length, 3): of O, B, I."""
    mentions: Tensor | None = None
    """(mentions, 3): those that were worked on."""
    queries: Tensor | None = None
    """(mentions, dim): in the space of entities."""
    candidates: Tensor | None = None
    """(mentions, k): rows of the nearest entities, best first."""
    entity_weights: Tensor | None = None
    """(mentions, k): how much of each was taken."""
    neighbours: Tensor | None = None
    """(mentions, k): rows of the neighbours seen, -1 where there is none."""
    neighbour_weights: Tensor | None = None
    """(mentions, k): how much of each was taken, 0 where there is none."""
