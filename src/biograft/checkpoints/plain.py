"""The plain BERT that stands in a model with a knowledge layer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import BertConfig, BertForMaskedLM, BertModel

from biograft.errors import InputError
from biograft.nn.knowledge import KnowledgeBertConfig
from biograft.nn.knowledge.config import NAMING
from biograft.nn.loading import load_masked_lm

_KNOWLEDGE = KnowledgeBertConfig().to_dict().keys() - BertConfig().to_dict().keys()
_OURS = {*NAMING, *_KNOWLEDGE}
"""What a plain BERT's configuration does not say."""


def plain_bert(folder: Path) -> Any:
    """Give the stack of a model, and its token head if the folder holds one."""
    loaded = load_masked_lm(folder)
    config = loaded.model.config
    if not isinstance(config, KnowledgeBertConfig):
        raise InputError(
            f"is a {config.model_type}, which has no knowledge layer to leave out", path=folder
        )
    told = {key: value for key, value in config.to_dict().items() if key not in _OURS}
    stack = loaded.model.model.bert.state_dict()
    if loaded.new_head:
        bert: Any = BertModel(BertConfig(**told), add_pooling_layer=False)
        bert.load_state_dict(stack)
        return bert
    bert = BertForMaskedLM(BertConfig(**told))
    bert.bert.load_state_dict(stack)
    bert.cls.load_state_dict(loaded.model.cls.state_dict())
    return bert
