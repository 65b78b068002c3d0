"""Fine-tuning of encoders for dense search, on labelled mentions (BioSyn, contrastive)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft.training.linkers.finetuning.config import (
        FinetuneConfig as FinetuneConfig,
        FinetuneTraining as FinetuneTraining,
    )
    from biograft.training.linkers.finetuning.encoder import (
        FinetuneResult as FinetuneResult,
        finetune_encoder as finetune_encoder,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
