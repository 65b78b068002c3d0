"""Name generation: from a text with a marked mention, the name of its concept (GenBioEL)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.objectives.name_generation.config import (
        NameGenerationConfig as NameGenerationConfig,
    )
    from biograft.objectives.name_generation.learning import (
        EncodedBatches as EncodedBatches,
        NameLearning as NameLearning,
    )
    from biograft.objectives.name_generation.objective import (
        NameGeneration as NameGeneration,
        SequenceBatch as SequenceBatch,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
