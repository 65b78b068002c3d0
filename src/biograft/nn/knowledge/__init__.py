"""BERT that takes up what is known of the entities a text names.

Importing this package makes ``AutoModel`` know its folders.
"""

from __future__ import annotations

from biograft.nn.knowledge.config import KnowledgeBertConfig
from biograft.nn.knowledge.entities import Entity, entity_table, read_entities, write_entities
from biograft.nn.knowledge.masked_lm import KnowledgeBertForMaskedLM
from biograft.nn.knowledge.model import KnowledgeBertModel, KnowledgeBertOutput
from biograft.nn.knowledge_layers import KNOWLEDGE_LAYERS

__all__ = [
    "KNOWLEDGE_LAYERS",
    "Entity",
    "KnowledgeBertConfig",
    "KnowledgeBertForMaskedLM",
    "KnowledgeBertModel",
    "KnowledgeBertOutput",
    "entity_table",
    "read_entities",
    "write_entities",
]
