# mypy: allow-untyped-calls
# (classes of transformers are built by functions without types)
"""BERT with knowledge layers between its own layers.

The layers of BERT form one stack, so that the weights of ``bert`` alone are a plain BERT.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    BertForMaskedLM,
    BertModel,
    BertPreTrainedModel,
    initialization,
)
from transformers.masking_utils import create_bidirectional_mask
from transformers.modeling_outputs import TokenClassifierOutput
from transformers.models.bert.modeling_bert import BertOnlyMLMHead, BertPooler
from transformers.utils.generic import ModelOutput

from biograft.errors import ConfigError
from biograft.models.knowledge.config import MODEL_IDENTITY, KnowledgeBertConfig
from biograft.models.knowledge.entities import TableEntity, read_entities, write_entities
from biograft.models.knowledge.layers import EntityInputs, Infusion, Knowledge, MentionReader
from biograft.models.knowledge.nearest import Clusters
from biograft.models.knowledge_layers import NEIGHBOURS


@dataclass
class KnowledgeBertOutput(ModelOutput):
    """The outputs of a forward pass; tensors as in ``Knowledge``."""

    last_hidden_state: Tensor | None = None
    """States of the tokens, (texts, tokens, width)."""
    text_states: Tensor | None = None
    """(sequences, length, width): the states of the text-only layers."""
    detection_scores: Tensor | None = None
    """Scores of the tags that mark mentions."""
    mentions: Tensor | None = None
    """Text, first and last token of each mention."""
    queries: Tensor | None = None
    """Mentions in the space of entities."""
    candidates: Tensor | None = None
    """Rows of the nearest entities of each mention."""
    entity_weights: Tensor | None = None
    """Weight of each candidate."""
    neighbours: Tensor | None = None
    """Rows of the neighbours of each mention's entity."""
    neighbour_weights: Tensor | None = None
    """Attention to each neighbour."""
    logits: Tensor | None = None
    """(sequences, length, tokens): scores of the vocabulary, of a model with the token head."""


class KnowledgeBertPreTrained(BertPreTrainedModel):
    """Shared base of both models; weights are initialised as those of BERT."""

    config: KnowledgeBertConfig
    config_class = KnowledgeBertConfig
    base_model_prefix = "model"
    entities: tuple[TableEntity, ...] = ()
    """The entities of the rows of the table, if known; saved and loaded with the weights."""

    def _init_weights(self, module: torch.nn.Module) -> None:
        super()._init_weights(module)
        if isinstance(module, Clusters):
            for buffer in module.buffers():  # loaded ones stay
                initialization.zeros_(buffer)
        if isinstance(module, Infusion):
            module.init_weights()

    def save_pretrained(self, save_directory: Any, *args: Any, **options: Any) -> None:
        """Write weights, configuration and entities into a folder.

        Args:
            save_directory: Folder to write.
            args: As for ``PreTrainedModel.save_pretrained``.
            options: As for ``PreTrainedModel.save_pretrained``.
        """
        super().save_pretrained(save_directory, *args, **options)
        if self.entities:
            write_entities(Path(save_directory), self.entities)

    @classmethod
    def from_pretrained(cls, name_or_folder: Any, *args: Any, **options: Any) -> Any:  # type: ignore[override]
        """Load a model as transformers does, and its entities with it.

        Args:
            name_or_folder: Folder of the model.
            args: As for ``PreTrainedModel.from_pretrained``.
            options: As for ``PreTrainedModel.from_pretrained``.
        """
        loaded: Any = super().from_pretrained(name_or_folder, *args, **options)
        model: Any = loaded[0] if isinstance(loaded, tuple) else loaded
        model.entities = read_entities(Path(name_or_folder), model.config.n_entities)
        table = getattr(model, "model", model).entity_table.weight
        table.requires_grad_(
            not model.config.freeze_entities
        )  # loading makes all weights trainable
        return loaded


class KnowledgeBertModel(KnowledgeBertPreTrained):
    """Token ids to states, with the outputs of the knowledge layers."""

    def __init__(self, config: KnowledgeBertConfig) -> None:
        super().__init__(config)
        self.bert: Any = BertModel(config, add_pooling_layer=False)
        self.entity_table = torch.nn.Embedding(config.n_entities, config.entity_dim)
        self.entity_table.weight.requires_grad_(not config.freeze_entities)
        layers = config.layer_configs()
        if not layers:
            raise ConfigError(
                "knowledge_layers: expected at least one layer, found none; a model of an earlier "
                "version of biograft must be imported or trained again"
            )
        self.knowledge: Any = torch.nn.ModuleDict(
            {name: layer.build(config) for name, layer in layers.items()}
        )
        self._layers_after: dict[int, list[str]] = {}
        for name, layer in layers.items():
            self._layers_after.setdefault(layer.after, []).append(name)
        linked = any(layer.takes_entity_inputs for layer in layers.values())
        self.mention_reader = MentionReader(config) if linked else None
        """Projects mentions of the last layer into the space of entities, for objectives."""
        self.post_init()

    def get_input_embeddings(self) -> torch.nn.Module:
        """Return the input embeddings."""
        return cast("torch.nn.Module", self.bert.embeddings.word_embeddings)

    def set_input_embeddings(self, value: torch.nn.Module) -> None:
        """Replace the input embeddings."""
        self.bert.embeddings.word_embeddings = value

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        mentions: Tensor | None = None,
        entities: Tensor | None = None,
        *,
        gold: bool | None = None,
        withheld: Tensor | None = None,
    ) -> KnowledgeBertOutput:
        """Compute the states of a batch.

        Args:
            input_ids: Token ids: (sequences, length).
            attention_mask: 1 where there is a token: (sequences, length); default: everywhere.
            token_type_ids: Segment of each token: (sequences, length); default: 0.
            mentions: Sequence, first token and last token of each: (mentions, 3), ascending and
                disjoint. Without them, an entity memory uses those it detects.
            entities: Row of the table that each mention is linked to, -1: none.
            gold: The mentions are all that the text has, as in pre-training, and an entity memory
                uses them, too; by default only where no entities are given.
            withheld: 1 for neighbours that are not used, as pre-training predicts them: (mentions,
                neighbours).
        """
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        states = self.bert.embeddings(input_ids=input_ids, token_type_ids=token_type_ids)
        bias = create_bidirectional_mask(
            config=self.bert.config, inputs_embeds=states, attention_mask=mask
        )
        gold = entities is None if gold is None else gold
        inputs = EntityInputs(
            states, mask, self.entity_table.weight, mentions, entities, withheld, gold
        )
        text_states: Tensor | None = None
        outputs: dict[str, Tensor] = {}
        layers = list(self.bert.encoder.layer)  # a slice of the module list is a new module
        n_run = 0
        for n_done in range(len(layers) + 1):
            following = layers[n_done:]
            for name in self._layers_after.get(n_done, ()):
                found = self.knowledge[name](
                    replace(inputs, states=states, layers=following, bias=bias)
                )
                text_states = states if text_states is None else text_states
                outputs |= _outputs(found)
                states, n_run = found.states, n_run + found.n_layers_run
            if n_run:  # all that follow
                break
            if following:
                states = following[0](states, bias)
        text_states = states if text_states is None else text_states
        return KnowledgeBertOutput(last_hidden_state=states, text_states=text_states, **outputs)


def _outputs(knowledge: Knowledge) -> dict[str, Tensor]:
    names = {field.name for field in fields(knowledge)} - {"states", "n_layers_run"}
    values = {name: getattr(knowledge, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


AutoConfig.register(KnowledgeBertConfig.model_type, KnowledgeBertConfig, exist_ok=True)
AutoModel.register(KnowledgeBertConfig, KnowledgeBertModel, exist_ok=True)


class _WithHead(KnowledgeBertPreTrained):
    """The model with a head: its entities and input embeddings are those of the model."""

    def __init__(self, config: KnowledgeBertConfig) -> None:
        super().__init__(config)
        self.model: Any = KnowledgeBertModel(config)

    @property
    def entities(self) -> tuple[TableEntity, ...]:
        """The entities of the rows of the table."""
        entities: tuple[TableEntity, ...] = self.model.entities
        return entities

    @entities.setter
    def entities(self, entities: tuple[TableEntity, ...]) -> None:
        self.model.entities = entities

    def get_input_embeddings(self) -> torch.nn.Module:
        """Return the input embeddings."""
        return cast("torch.nn.Module", self.model.get_input_embeddings())

    def set_input_embeddings(self, value: torch.nn.Module) -> None:
        """Replace the input embeddings."""
        self.model.set_input_embeddings(value)


class KnowledgeBertForTokenClassification(_WithHead):
    """The model with labels of tokens, as BERT has them."""

    pools = False

    def __init__(self, config: KnowledgeBertConfig) -> None:
        super().__init__(config)
        self.pooler: Any = BertPooler(config) if self.pools else nn.Identity()
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels or 0)
        self.post_init()

    def forward(self, **inputs: Any) -> TokenClassifierOutput:
        """Compute ``logits``, (sequences, length, labels), of the inputs of the model."""
        states = self.pooler(self.model(**inputs).last_hidden_state)
        return TokenClassifierOutput(logits=self.classifier(self.dropout(states)))


class KnowledgeBertForSequenceClassification(KnowledgeBertForTokenClassification):
    """The model with labels of texts, from the state of [CLS]; ``logits``: (sequences, labels)."""

    pools = True


class KnowledgeBertForMaskedLM(_WithHead):
    """The model with the token head, which scores the vocabulary."""

    _tied_weights_keys = {  # noqa: RUF012 - as transformers wants it
        "cls.predictions.decoder.weight": "model.bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    }

    def __init__(self, config: KnowledgeBertConfig) -> None:
        super().__init__(config)
        self.cls: Any = BertOnlyMLMHead(config)
        self.post_init()

    @classmethod
    def from_bert(
        cls,
        bert: str | Path | BertForMaskedLM,
        table: Tensor | npt.NDArray[np.float32],
        entities: Sequence[TableEntity] = (),
        *,
        graph: Mapping[str, npt.NDArray[np.integer]] | None = None,
        seed: int = 0,
        **settings: Any,
    ) -> KnowledgeBertForMaskedLM:
        """Build a model from a plain BERT, a folder or a model, and the vectors of entities.

        The weights of BERT are copied; new weights are initialised at random.

        Args:
            bert: A plain BERT: its folder, or the model.
            table: Vectors of the entities: (entities, dim).
            entities: The entities with their names, a row of the table each; empty if they are not
                to be found in texts.
            graph: ``neighbours`` and ``types`` of the entities, for ``neighbour_attention``.
            seed: Seed of new weights.
            settings: Fields of the configuration, such as ``knowledge_layers``.
        """
        bert = _plain_bert(bert, seed)
        n_entities, dim = table.shape
        if entities and len(entities) != n_entities:
            raise ConfigError(
                f"entities: expected {n_entities:,}, a row of the table each, "
                f"found {len(entities):,}"
            )
        plain = {k: v for k, v in bert.config.to_dict().items() if k not in MODEL_IDENTITY}
        sizes = {"n_entities": n_entities, "entity_dim": dim}
        if graph is not None:
            sizes["n_edges"] = graph["neighbours"].shape[1]
        config = KnowledgeBertConfig(**{**plain, **settings, **sizes})
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

    def get_output_embeddings(self) -> torch.nn.Module:
        """Return the layer that scores tokens; its weight is that of the input embeddings."""
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
        """Compute states as the model does, and the scores of the vocabulary at every token.

        Args:
            input_ids: Token ids: (sequences, length).
            attention_mask: 1 where there is a token: (sequences, length); default: everywhere.
            token_type_ids: Segment of each token: (sequences, length); default: 0.
            mentions: As for :class:`KnowledgeBertModel`.
            entities: As for :class:`KnowledgeBertModel`.
            gold: As for :class:`KnowledgeBertModel`.
        """
        output: KnowledgeBertOutput = self.model(
            input_ids, attention_mask, token_type_ids, mentions, entities, gold=gold
        )
        output.logits = self.token_scores(cast("Tensor", output.last_hidden_state))
        return output


def _plain_bert(bert: Any, seed: int) -> BertForMaskedLM:
    model = bert
    if isinstance(bert, (str, Path)):
        from biograft.models.pretrained import load_masked_lm

        model = load_masked_lm(bert, seed=seed).model
    if not isinstance(model, BertForMaskedLM):
        raise ConfigError(
            f"expected a plain BERT for knowledge layers, with or without its token head, found "
            f"{type(model).__name__}"
        )
    return model


AutoModelForMaskedLM.register(KnowledgeBertConfig, KnowledgeBertForMaskedLM, exist_ok=True)
AutoModelForTokenClassification.register(
    KnowledgeBertConfig, KnowledgeBertForTokenClassification, exist_ok=True
)
AutoModelForSequenceClassification.register(
    KnowledgeBertConfig, KnowledgeBertForSequenceClassification, exist_ok=True
)
