# mypy: allow-untyped-calls
# (classes of transformers are built by functions without types)
"""BERT with a knowledge layer between two of its layers.

The layers stand in one stack, so that the weights of ``bert`` alone are a plain BERT.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    BertForMaskedLM,
    BertModel,
    BertPreTrainedModel,
    initialization,
)
from transformers.masking_utils import create_bidirectional_mask
from transformers.models.bert.modeling_bert import BertOnlyMLMHead
from transformers.utils.generic import ModelOutput

from biograft.errors import ConfigError
from biograft.nn.knowledge.clusters import Clusters
from biograft.nn.knowledge.config import NAMING, KnowledgeBertConfig
from biograft.nn.knowledge.entities import Entity, read_entities, write_entities
from biograft.nn.knowledge.layers import KNOWLEDGE_LAYERS


@dataclass
class KnowledgeBertOutput(ModelOutput):
    """What a forward pass gives; tensors as in ``Knowledge``."""

    last_hidden_state: Tensor | None = None
    text_states: Tensor | None = None
    """(sequences, length, width): after the layers that read the text alone."""
    detection_scores: Tensor | None = None
    mentions: Tensor | None = None
    queries: Tensor | None = None
    candidates: Tensor | None = None
    entity_weights: Tensor | None = None
    logits: Tensor | None = None
    """(sequences, length, tokens): scores of the vocabulary, of a model that has the head."""


class KnowledgeBertPreTrained(BertPreTrainedModel):
    """What both models share; weights begin as those of BERT."""

    config: KnowledgeBertConfig
    config_class = KnowledgeBertConfig
    base_model_prefix = "model"
    entities: tuple[Entity, ...] = ()
    """What the rows of the table stand for, if that is known; saved and loaded with the weights."""

    def _init_weights(self, module: torch.nn.Module) -> None:
        super()._init_weights(module)
        if isinstance(module, Clusters):
            for buffer in module.buffers():  # those that were loaded stay
                initialization.zeros_(buffer)

    def save_pretrained(self, save_directory: Any, *args: Any, **options: Any) -> None:
        """Write weights, configuration and entities into a folder."""
        super().save_pretrained(save_directory, *args, **options)
        if self.entities:
            write_entities(Path(save_directory), self.entities)

    @classmethod
    def from_pretrained(cls, name_or_folder: Any, *args: Any, **options: Any) -> Any:  # type: ignore[override]
        """Load a model as transformers does, and its entities with it."""
        loaded: Any = super().from_pretrained(name_or_folder, *args, **options)
        model: Any = loaded[0] if isinstance(loaded, tuple) else loaded
        model.entities = read_entities(Path(name_or_folder), model.config.n_entities)
        table = getattr(model, "model", model).knowledge.entities.weight
        table.requires_grad_(not model.config.freeze_entities)  # loading set all weights free
        return loaded


class KnowledgeBertModel(KnowledgeBertPreTrained):
    """Token ids to states, with what the knowledge layer made of the mentions."""

    def __init__(self, config: KnowledgeBertConfig) -> None:
        super().__init__(config)
        self.bert: Any = BertModel(config, add_pooling_layer=False)
        self.knowledge: Any = KNOWLEDGE_LAYERS.load(config.knowledge)(config)
        self.post_init()

    def get_input_embeddings(self) -> torch.nn.Module:
        """Give the table of tokens."""
        return cast("torch.nn.Module", self.bert.embeddings.word_embeddings)

    def set_input_embeddings(self, value: torch.nn.Module) -> None:
        """Replace the table of tokens."""
        self.bert.embeddings.word_embeddings = value

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        mentions: Tensor | None = None,
    ) -> KnowledgeBertOutput:
        """Compute the states of a batch.

        ``mentions`` are (mentions, 3): sequence, first token, last token, of each sequence in
        ascending order and disjoint. Without any given, the model uses those it finds.
        """
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        states = self.bert.embeddings(input_ids=input_ids, token_type_ids=token_type_ids)
        bias = create_bidirectional_mask(
            config=self.bert.config, inputs_embeds=states, attention_mask=mask
        )
        layers = self.bert.encoder.layer
        for layer in layers[: self.config.knowledge_after]:
            states = layer(states, bias)
        found = self.knowledge(states, mask, mentions)
        text_states, states = states, found.states
        for layer in layers[self.config.knowledge_after :]:
            states = layer(states, bias)
        return KnowledgeBertOutput(
            last_hidden_state=states,
            text_states=text_states,
            detection_scores=found.detection_scores,
            mentions=found.mentions,
            queries=found.queries,
            candidates=found.candidates,
            entity_weights=found.entity_weights,
        )


class KnowledgeBertForMaskedLM(KnowledgeBertPreTrained):
    """The same, with the head that scores the vocabulary."""

    _tied_weights_keys = {  # noqa: RUF012 - as transformers wants it
        "cls.predictions.decoder.weight": "model.bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    }

    def __init__(self, config: KnowledgeBertConfig) -> None:
        super().__init__(config)
        self.model: Any = KnowledgeBertModel(config)
        self.cls: Any = BertOnlyMLMHead(config)
        self.post_init()

    @classmethod
    def from_bert(
        cls,
        bert: str | Path | BertForMaskedLM,
        table: Tensor | npt.NDArray[np.float32],
        entities: Sequence[Entity] = (),
        *,
        seed: int = 0,
        **settings: Any,
    ) -> KnowledgeBertForMaskedLM:
        """Begin from a plain BERT, a folder or a model, and the vectors of entities.

        All weights of BERT are taken as they are; what is new is drawn. ``settings`` are fields
        of the configuration, such as ``knowledge_after``.
        """
        bert = _plain_bert(bert, seed)
        n_entities, dim = table.shape
        if entities and len(entities) != n_entities:
            raise ConfigError(
                f"entities: expected {n_entities:,}, a row of the table each, "
                f"found {len(entities):,}"
            )
        told = {k: v for k, v in bert.config.to_dict().items() if k not in NAMING}
        config = KnowledgeBertConfig(
            **{**told, **settings, "n_entities": n_entities, "entity_dim": dim}
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = cls(config)
        model.model.bert.load_state_dict(bert.bert.state_dict())
        model.cls.load_state_dict(bert.cls.state_dict())
        with torch.no_grad():
            model.model.knowledge.entities.weight.copy_(torch.as_tensor(table))
        model.entities = tuple(entities)
        return model

    @property
    def entities(self) -> tuple[Entity, ...]:
        """What the rows of the table stand for."""
        entities: tuple[Entity, ...] = self.model.entities
        return entities

    @entities.setter
    def entities(self, entities: tuple[Entity, ...]) -> None:
        self.model.entities = entities

    def get_input_embeddings(self) -> torch.nn.Module:
        """Give the table of tokens."""
        return cast("torch.nn.Module", self.model.get_input_embeddings())

    def set_input_embeddings(self, value: torch.nn.Module) -> None:
        """Replace the table of tokens."""
        self.model.set_input_embeddings(value)

    def get_output_embeddings(self) -> torch.nn.Module:
        """Give the layer that scores tokens; its weight is the table of tokens."""
        return cast("torch.nn.Module", self.cls.predictions.decoder)

    def set_output_embeddings(self, new_embeddings: torch.nn.Module) -> None:
        """Replace the layer that scores tokens."""
        self.cls.predictions.decoder = new_embeddings
        self.cls.predictions.bias = new_embeddings.bias

    def token_scores(self, states: Tensor) -> Tensor:
        """Score the vocabulary for states, (..., width) to (..., tokens)."""
        scores: Tensor = self.cls(states)
        return scores

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        mentions: Tensor | None = None,
    ) -> KnowledgeBertOutput:
        """Compute states as the model does, and the scores of the vocabulary at every token."""
        output: KnowledgeBertOutput = self.model(
            input_ids, attention_mask, token_type_ids, mentions
        )
        output.logits = self.token_scores(cast("Tensor", output.last_hidden_state))
        return output


def _plain_bert(bert: Any, seed: int) -> BertForMaskedLM:
    model = bert
    if isinstance(bert, (str, Path)):
        from biograft.nn.loading import load_masked_lm  # which knows our models

        model = load_masked_lm(bert, seed=seed).model
    if not isinstance(model, BertForMaskedLM):
        raise ConfigError(
            f"a knowledge layer goes into a plain BERT with or without its token head, found "
            f"{type(model).__name__}"
        )
    return model


AutoConfig.register(KnowledgeBertConfig.model_type, KnowledgeBertConfig, exist_ok=True)
AutoModel.register(KnowledgeBertConfig, KnowledgeBertModel, exist_ok=True)
AutoModelForMaskedLM.register(KnowledgeBertConfig, KnowledgeBertForMaskedLM, exist_ok=True)
