"""Neural models: text encoders, sequence-to-sequence models, knowledge layers, precision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft.models.batches import pad as pad, token_batches as token_batches
    from biograft.models.encoder import POOLINGS as POOLINGS, TextEncoder as TextEncoder
    from biograft.models.generation import BeamConfig as BeamConfig
    from biograft.models.generation.beam_search import (
        GeneratedNames as GeneratedNames,
        GenerationInputs as GenerationInputs,
        generate_names as generate_names,
    )
    from biograft.models.hub import plan_push as plan_push, push as push
    from biograft.models.knowledge import (
        KNOWLEDGE_LAYERS as KNOWLEDGE_LAYERS,
        KnowledgeBertConfig as KnowledgeBertConfig,
        KnowledgeBertForMaskedLM as KnowledgeBertForMaskedLM,
        KnowledgeBertModel as KnowledgeBertModel,
        TableEntity as TableEntity,
        entity_table as entity_table,
        read_entities as read_entities,
        write_entities as write_entities,
    )
    from biograft.models.knowledge.entity_finder import (
        EntityFinder as EntityFinder,
        EntityMention as EntityMention,
    )
    from biograft.models.knowledge.layers import (
        EntityFusion as EntityFusion,
        EntityInputs as EntityInputs,
        EntityMemory as EntityMemory,
        NeighbourAttention as NeighbourAttention,
        spans_of_tags as spans_of_tags,
    )
    from biograft.models.knowledge.nearest import Clusters as Clusters, nearest_rows as nearest_rows
    from biograft.models.knowledge_layers import (
        EntityFusionConfig as EntityFusionConfig,
        EntityMemoryConfig as EntityMemoryConfig,
        NeighbourAttentionConfig as NeighbourAttentionConfig,
        read_layers as read_layers,
    )
    from biograft.models.masked_lm import MaskedLanguageModel as MaskedLanguageModel
    from biograft.models.model_card import ModelCard as ModelCard, render_card as render_card
    from biograft.models.precision import (
        PRECISIONS as PRECISIONS,
        attention_for_training as attention_for_training,
        autocast_in as autocast_in,
        choose_precision as choose_precision,
        processor_has_bf16 as processor_has_bf16,
    )
    from biograft.models.pretrained import (
        load_config as load_config,
        load_masked_lm as load_masked_lm,
        load_model as load_model,
        load_tokenizer as load_tokenizer,
        quiet_transformers as quiet_transformers,
    )
    from biograft.models.scratch import make_character_encoder as make_character_encoder
    from biograft.models.scratch_configs import (
        NewBert as NewBert,
        NewDecoder as NewDecoder,
        NewSeq2Seq as NewSeq2Seq,
    )
    from biograft.models.seq2seq import Seq2SeqModel as Seq2SeqModel
    from biograft.models.settings import EncoderSettings as EncoderSettings


__getattr__, __dir__, __all__ = lazify(__name__)
