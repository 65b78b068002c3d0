"""BERT with knowledge layers, which add what is known of the entities that a text mentions.

Importing this package registers the models with ``AutoModel``.
"""

from __future__ import annotations

from biograft.models.knowledge.config import KnowledgeBertConfig as KnowledgeBertConfig
from biograft.models.knowledge.entities import (
    TableEntity as TableEntity,
    entity_table as entity_table,
    read_entities as read_entities,
    write_entities as write_entities,
)
from biograft.models.knowledge.layers import (
    EntityInputs as EntityInputs,
    Infusion as Infusion,
    Knowledge as Knowledge,
)
from biograft.models.knowledge.model import (
    KnowledgeBertForMaskedLM as KnowledgeBertForMaskedLM,
    KnowledgeBertModel as KnowledgeBertModel,
    KnowledgeBertOutput as KnowledgeBertOutput,
)
from biograft.models.knowledge_layers import (
    KNOWLEDGE_LAYERS as KNOWLEDGE_LAYERS,
    KnowledgeLayerConfig as KnowledgeLayerConfig,
)
