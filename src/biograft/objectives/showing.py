"""Of which mentions the knowledge layer is told the entities.

A mention that was given its neighbours could foretell them, or itself, by copying. So those that
are hidden from the tokens are told, and the others are asked for their neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from biograft.errors import ConfigError
from biograft.objectives.choices import check_choice
from biograft.objectives.records import IGNORED, SHOWN, Bools, TextExample

HIDDEN = "hidden"
WAYS = (HIDDEN, "all")
HIDDEN_BY = "masked_tokens"
"""The objective whose label of a token is what it was before it may have been hidden."""


@dataclass(frozen=True, slots=True)
class Showing:
    """Prepares examples for knowledge layers that are told entities, whatever the objectives are.

    It takes its turn after what hides tokens, and before what goes by what mentions are told.
    """

    which: str
    turn: ClassVar[int] = 1

    def prepare(self, example: TextExample, draw: np.random.Generator) -> TextExample:
        """Say which mentions are told their entities."""
        return show(example, self.which)


def show(example: TextExample, which: str) -> TextExample:
    """Say which mentions are told their entities: ``hidden`` ones, or ``all``.

    Hidden is a mention all of whose tokens are foretold by masked_tokens. Those of unknown
    entities are told none.
    """
    check_choice("shown", which, WAYS)
    told = example.mentions[:, 2] >= 0
    if which == HIDDEN:
        told &= _hidden(example)
    labels = np.where(told, example.mentions[:, 2], IGNORED)
    return replace(example, mention_labels={**example.mention_labels, SHOWN: labels})


def _hidden(example: TextExample) -> Bools:
    if HIDDEN_BY not in example.token_labels:
        raise ConfigError(
            f"shown: hidden mentions are to be told their entities, and nothing hides any; add "
            f"objective.{HIDDEN_BY}, or choose all"
        )
    foretold = example.token_labels[HIDDEN_BY] != IGNORED
    n_before = np.concatenate([[0], np.cumsum(foretold)])
    first, end = example.mentions[:, 0], example.mentions[:, 1] + 1
    hidden: Bools = n_before[end] - n_before[first] == end - first
    return hidden
