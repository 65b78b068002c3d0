"""Name generation: from a text with a marked mention, the name of its concept (GenBioEL)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.objectives.name_generation.config import NameGenerationConfig
    from biograft.objectives.name_generation.learning import EncodedBatches, NameLearning
    from biograft.objectives.name_generation.objective import NameGeneration, SequenceBatch

__all__ = [
    "EncodedBatches",
    "NameGeneration",
    "NameGenerationConfig",
    "NameLearning",
    "SequenceBatch",
]

_HOMES = {
    "EncodedBatches": "biograft.objectives.name_generation.learning",
    "NameGeneration": "biograft.objectives.name_generation.objective",
    "NameGenerationConfig": "biograft.objectives.name_generation.config",
    "NameLearning": "biograft.objectives.name_generation.learning",
    "SequenceBatch": "biograft.objectives.name_generation.objective",
}

__getattr__ = load_on_use(__name__, _HOMES)
