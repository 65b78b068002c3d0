"""Fine-tune an encoder on mentions whose concepts are known, so that it finds those concepts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.linking.finetuning.config import FinetuneConfig, FinetuneTraining
    from biograft.linking.finetuning.encoder import FinetuneResult, finetune_encoder

__all__ = ["FinetuneConfig", "FinetuneResult", "FinetuneTraining", "finetune_encoder"]

_HOMES = {
    "FinetuneConfig": "biograft.linking.finetuning.config",
    "FinetuneResult": "biograft.linking.finetuning.encoder",
    "FinetuneTraining": "biograft.linking.finetuning.config",
    "finetune_encoder": "biograft.linking.finetuning.encoder",
}

__getattr__ = load_on_use(__name__, _HOMES)
