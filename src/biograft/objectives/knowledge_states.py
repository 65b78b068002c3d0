"""What objectives need of a knowledge layer, or an error that says what to do."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from biograft.errors import ConfigError
from biograft.objectives.states import TextStates


def mention_reader(states: TextStates, objective: str) -> Callable[[Tensor, Tensor], Tensor]:
    """Give what reads mentions from states in the space of entities."""
    if states.read_mentions is None:
        raise ConfigError(
            f"objective.{objective}: the model does not read mentions from its last layer; give "
            "it the knowledge layer neighbour_attention or entity_fusion, or take the objective out"
        )
    return states.read_mentions


def entity_table(states: TextStates, objective: str) -> Tensor:
    """Give the vectors of all entities."""
    if states.table is None:
        raise ConfigError(
            f"objective.{objective}: the model has no table of entities; give it a knowledge "
            "layer, or take the objective out"
        )
    return states.table
