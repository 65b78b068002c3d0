"""The model that pre-training starts from, and the knowledge layers that are added to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import BertForMaskedLM

from biograft.artifacts import MANIFEST, hash_file, new_folder
from biograft.errors import ConfigError
from biograft.graph.embedding import Embeddings
from biograft.kb import KnowledgeBase
from biograft.models.knowledge import KnowledgeBertForMaskedLM
from biograft.models.knowledge.entities import TableEntity, entity_table
from biograft.models.knowledge_layers import NEIGHBOURS, KnowledgeLayerConfig
from biograft.models.pretrained import (
    hash_encoder,
    load_masked_lm,
    quiet_transformers,
    save_tokenizer,
)
from biograft.models.settings import EncoderSettings
from biograft.text.shards import Shards
from biograft.training.objectives.examples import EntityGraph
from biograft.training.pretraining.recipe import KnowledgeConfig, PretrainingRecipe


def check_contents(name: str, lm: Any, config: KnowledgeConfig, graph: EntityGraph | None) -> None:
    """Refuse vectors and neighbours other than those that a model was built with."""
    if config.freeze and config.vectors is not None and not _has_vectors(lm, config):
        raise ConfigError(
            f"knowledge.vectors: the frozen table of {name} differs from {config.vectors}; name "
            "the vectors it was built with, or start from a plain BERT"
        )
    if graph is not None and not _has_neighbours(lm, graph):
        raise ConfigError(
            f"knowledge.neighbours: the neighbours of {name} differ from {config.neighbours}; name "
            "those it was built with, or start from a plain BERT"
        )


def _has_vectors(lm: Any, config: KnowledgeConfig) -> bool:
    """Whether the table has the given vectors, for at least one entity."""
    embeddings = Embeddings.open(str(config.vectors))
    given = embeddings.tables.entity
    table = lm.model.entity_table.weight.detach().cpu().float().numpy()
    row_of = {identifier: row for row, identifier in enumerate(embeddings.entity_ids)}
    rows = np.fromiter((row_of.get(entity.id, -1) for entity in lm.entities), np.int64)
    known = rows >= 0
    if not known.any() or given.shape[1] != table.shape[1]:
        return False
    return np.allclose(table[known], given[rows[known]])


def _has_neighbours(lm: Any, graph: EntityGraph) -> bool:
    layer = lm.model.knowledge[NEIGHBOURS]
    return bool(
        np.array_equal(layer.neighbours.cpu().numpy(), graph.neighbours)
        and np.array_equal(layer.types.cpu().numpy(), graph.types)
    )


_TOKENIZER_DOCUMENTS = 200_000
"""The maximum number of documents that a new tokenizer is trained on."""


@dataclass(frozen=True, slots=True)
class StartModel:
    """The language model that a run starts from, with its tokenizer."""

    lm: Any
    tokenizer: Any
    fingerprint: str

    @property
    def entities(self) -> tuple[str, ...] | None:
        """The entities of a model that already has knowledge layers, in the order of its rows."""
        if not isinstance(self.lm, KnowledgeBertForMaskedLM):
            return None
        return tuple(entity.id for entity in self.lm.entities)

    @property
    def width(self) -> int:
        """Width of the states."""
        return int(self.lm.config.hidden_size)


def load_start(recipe: PretrainingRecipe) -> StartModel:
    """Load the encoder of a recipe, or create the new one that it describes.

    Missing weights, such as those of a token head, are initialised by the seed.
    """
    if recipe.new is not None:
        name, loaded = "the new model", recipe.new.create(_texts(recipe), recipe.training.seed)
    else:
        name = recipe.encoder.name
        loaded = load_masked_lm(name, seed=recipe.training.seed)
    _check_model(name, loaded.model, recipe)
    max_length = int(loaded.model.config.max_position_embeddings)
    if recipe.stream.max_length > max_length:
        raise ConfigError(
            f"stream.max_length: expected at most {max_length} for {name}, found "
            f"{recipe.stream.max_length}"
        )
    settings = EncoderSettings(pooling="mean", max_length=max_length, lower=False)
    fingerprint = hash_encoder(loaded.model, loaded.tokenizer, settings)
    return StartModel(loaded.model, loaded.tokenizer, fingerprint)


def _texts(recipe: PretrainingRecipe) -> Iterator[str]:
    """Iterate over the texts that a new tokenizer is trained on."""
    documents = iter(Shards.open(recipe.stream.shards))
    return (document.text for document in islice(documents, _TOKENIZER_DOCUMENTS))


def _check_model(name: str, model: Any, recipe: PretrainingRecipe) -> None:
    """Refuse a model that does not fit the recipe."""
    if isinstance(model, KnowledgeBertForMaskedLM):
        if model.config.n_entities != len(model.entities):
            raise ConfigError(
                f"{name}: does not name the entities of its {model.config.n_entities:,} rows "
                "(entities.jsonl), so it cannot be trained further on annotated text"
            )
        _check_same(name, model, recipe.knowledge)
    elif not isinstance(model, BertForMaskedLM):
        raise ConfigError(f"{name}: expected a BERT, found {type(model).__name__}")
    elif recipe.knowledge:
        n_layers = model.config.num_hidden_layers
        for layer, settings in recipe.knowledge.layers.items():
            if settings.after > n_layers:
                raise ConfigError(
                    f"knowledge.layers.{layer}.after: {name} has {n_layers} layers, found "
                    f"{settings.after}"
                )


def _check_same(name: str, model: Any, knowledge: KnowledgeConfig | None) -> None:
    """Refuse to change the knowledge layers that a model has."""
    if knowledge is None:
        return
    theirs = _settings(model.config.layer_configs(), model.config.freeze_entities)
    ours = _settings(knowledge.layers, knowledge.freeze)
    # with vectors, objectives read the relations there; without, the table is what the model has
    if not (knowledge.takes_entity_inputs and knowledge.vectors):
        theirs |= {"dim": model.config.entity_dim, "vectors": None}
        ours |= {"dim": knowledge.dim, "vectors": knowledge.vectors}
    for key in sorted({*ours, *theirs}):
        if ours.get(key) != theirs.get(key):
            raise ConfigError(
                f"knowledge.{key}: {name} has knowledge layers with {theirs.get(key)!r}, found "
                f"{ours.get(key)!r}; set the same, or start from a plain BERT"
            )


_CHECKPOINT_FIELDS = ("max_mentions", "compat")
"""Fields of imported checkpoints that a recipe need not repeat."""


def _settings(layers: Mapping[str, KnowledgeLayerConfig], freeze: bool) -> dict[str, Any]:
    """Return the settings of knowledge layers by their dotted key in ``[knowledge]``."""
    settings = {
        f"layers.{name}.{key}": value
        for name, layer in layers.items()
        for key, value in asdict(layer).items()
        if key not in _CHECKPOINT_FIELDS
    }
    return {**settings, "freeze": freeze}


@dataclass(frozen=True, slots=True)
class GraftResult:
    """A model with the knowledge layers of its recipe."""

    lm: Any
    n_random: int = 0
    """The number of entities that started at random, without a vector."""


def graft(
    start: StartModel,
    recipe: PretrainingRecipe,
    ids: Sequence[str],
    kb: KnowledgeBase | None,
    graph: EntityGraph | None = None,
) -> GraftResult:
    """Add the knowledge layers of a recipe to a model; existing ones stay."""
    config = recipe.knowledge
    if config is None:
        return GraftResult(start.lm)
    if start.entities is not None:
        check_contents(recipe.encoder.name, start.lm, config, graph)
        return GraftResult(start.lm)
    table = entity_table(ids, config.vectors, dim=config.dim, seed=recipe.training.seed)
    lm = KnowledgeBertForMaskedLM.from_bert(
        start.lm,
        table.vectors,
        [_entity(kb, identifier, all_names=config.takes_entity_inputs) for identifier in ids],
        graph={"neighbours": graph.neighbours, "types": graph.types} if graph else None,
        seed=recipe.training.seed,
        **config.model_settings(),
    )
    return GraftResult(lm, table.n_random)


def hash_knowledge(config: KnowledgeConfig | None) -> dict[str, str]:
    """Compute the hashes of the folders that the knowledge layers start from."""
    folders = {"vectors": config.vectors, "neighbours": config.neighbours} if config else {}
    return {
        name: hash_file(folder / MANIFEST)
        for name, folder in folders.items()
        if folder and (folder / MANIFEST).exists()
    }


def _entity(kb: KnowledgeBase | None, identifier: str, *, all_names: bool) -> TableEntity:
    row = None if kb is None else kb.find_row(identifier)
    if kb is None or row is None:
        return TableEntity(identifier)
    names = tuple(name.text for name in kb.concept_at(row).names) if all_names else ()
    return TableEntity(identifier, kb.name_at(row), names)


def save_model(lm: Any, tokenizer: Any, folder: Path) -> None:
    """Save a model with its tokenizer and, if it has any, its entities."""
    with new_folder(folder, overwrite=True) as work, torch.no_grad(), quiet_transformers():
        lm.save_pretrained(work)
        save_tokenizer(tokenizer, work)
