"""What objectives of running text must know before they see any of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from biograft.errors import ConfigError
from biograft.objectives.graph import GraphOfEntities


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Of the tokenizer, the model and the stream, what an objective is built with."""

    mask: int
    """Number of the token that hides another one."""
    n_tokens: int
    """Size of the vocabulary."""
    special: tuple[int, ...]
    """Tokens that are never drawn at random."""
    width: int
    """Width of the model's states."""
    entity_counts: npt.NDArray[np.int64] | None = None
    """How often each entity of the table occurs in the text, where known."""
    graph: GraphOfEntities | None = None
    """What is known of the entities besides their names, where something is."""
    embeddings: Any = None
    """(tokens, width): the vectors with which tokens went into the model it starts from."""
    shown: str = "hidden"
    """Which mentions the knowledge layer is told the entities of; see ``showing``."""

    @classmethod
    def of(
        cls,
        tokenizer: Any,
        width: int,
        entity_counts: npt.NDArray[np.int64] | None = None,
        **known: Any,
    ) -> Setting:
        """Ask a tokenizer of transformers; ``known`` are fields that it cannot tell."""
        if tokenizer.mask_token_id is None:
            raise ConfigError("encoder: its tokenizer has no mask token; choose another encoder")
        return cls(
            mask=tokenizer.mask_token_id,
            n_tokens=len(tokenizer),
            special=tuple(sorted(tokenizer.all_special_ids)),
            width=width,
            entity_counts=entity_counts,
            **known,
        )
