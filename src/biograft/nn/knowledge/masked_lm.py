# mypy: allow-untyped-calls
# (classes of transformers are built by functions without types)
"""A BERT with knowledge layers that scores the vocabulary, and how one begins from a plain BERT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from transformers import AutoModelForMaskedLM, BertForMaskedLM
from transformers.models.bert.modeling_bert import BertOnlyMLMHead

from biograft.errors import ConfigError
from biograft.nn.knowledge.config import NAMING, KnowledgeBertConfig
from biograft.nn.knowledge.entities import Entity
from biograft.nn.knowledge.model import (
    KnowledgeBertModel,
    KnowledgeBertOutput,
    KnowledgeBertPreTrained,
)
from biograft.nn.knowledge_layers import NEIGHBOURS


class KnowledgeBertForMaskedLM(KnowledgeBertPreTrained):
    """The model with the head that scores the vocabulary."""

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
        graph: Mapping[str, npt.NDArray[np.integer]] | None = None,
        seed: int = 0,
        **settings: Any,
    ) -> KnowledgeBertForMaskedLM:
        """Begin from a plain BERT, a folder or a model, and the vectors of entities.

        All weights of BERT are taken as they are; what is new is drawn. ``settings`` are fields
        of the configuration, such as ``knowledge_after``; ``graph`` has the ``neighbours`` and
        ``types`` of the entities, for ``neighbour_attention``.
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
            model.model.entity_table.weight.copy_(torch.as_tensor(table))
            for name, values in (graph or {}).items():
                getattr(model.model.knowledge[NEIGHBOURS], name).copy_(torch.as_tensor(values))
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
        entities: Tensor | None = None,
        *,
        gold: bool | None = None,
    ) -> KnowledgeBertOutput:
        """Compute states as the model does, and the scores of the vocabulary at every token."""
        output: KnowledgeBertOutput = self.model(
            input_ids, attention_mask, token_type_ids, mentions, entities, gold=gold
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


AutoModelForMaskedLM.register(KnowledgeBertConfig, KnowledgeBertForMaskedLM, exist_ok=True)
