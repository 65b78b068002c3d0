"""Going on from a model that has knowledge layers: what is in them must be what a recipe names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import BertForMaskedLM

from biograft.artifacts import MANIFEST, hash_file, new_folder
from biograft.corpus.shards import Shards
from biograft.errors import ConfigError
from biograft.graph.embedding import Embeddings
from biograft.kb import KnowledgeBase
from biograft.nn.knowledge import KnowledgeBertForMaskedLM
from biograft.nn.knowledge.entities import Entity, entity_table
from biograft.nn.knowledge_layers import NEIGHBOURS
from biograft.nn.pretrained import hash_encoder, load_masked_lm, quiet_transformers
from biograft.nn.settings import EncoderSettings
from biograft.objectives.examples import GraphOfEntities
from biograft.pretraining.recipe import KnowledgeConfig, Recipe


def check_contents(
    name: str, lm: Any, config: KnowledgeConfig, graph: GraphOfEntities | None
) -> None:
    """Refuse other vectors than a frozen table was made of, and other neighbours."""
    if config.freeze and config.vectors is not None and not _has_vectors(lm, config):
        raise ConfigError(
            f"knowledge.vectors: the frozen table of {name} holds other vectors than "
            f"{config.vectors}; name those it was made with, or begin from a plain BERT"
        )
    if graph is not None and not _has_neighbours(lm, graph):
        raise ConfigError(
            f"knowledge.neighbours: {name} sees other neighbours than those of "
            f"{config.neighbours}; name those it was made with, or begin from a plain BERT"
        )


def _has_vectors(lm: Any, config: KnowledgeConfig) -> bool:
    """Whether all entities that the vectors have, and at least one, have these in the table."""
    embeddings = Embeddings.open(str(config.vectors))
    given = embeddings.tables.entity
    table = lm.model.entity_table.weight.detach().cpu().float().numpy()
    place = {identifier: row for row, identifier in enumerate(embeddings.entity_ids)}
    rows = np.fromiter((place.get(entity.id, -1) for entity in lm.entities), np.int64)
    known = rows >= 0
    if not known.any() or given.shape[1] != table.shape[1]:
        return False
    return np.allclose(table[known], given[rows[known]])


def _has_neighbours(lm: Any, graph: GraphOfEntities) -> bool:
    layer = lm.model.knowledge[NEIGHBOURS]
    return bool(
        np.array_equal(layer.neighbours.cpu().numpy(), graph.neighbours)
        and np.array_equal(layer.types.cpu().numpy(), graph.types)
    )


_TOKENISED = 200_000
"""From how many documents, at most, a new tokenizer is learnt."""


@dataclass(frozen=True, slots=True)
class Start:
    """What a run begins from."""

    lm: Any
    tokenizer: Any
    fingerprint: str

    @property
    def entities(self) -> tuple[str, ...] | None:
        """The entities of a model that has a knowledge layer already, in the order of its rows."""
        if not isinstance(self.lm, KnowledgeBertForMaskedLM):
            return None
        return tuple(entity.id for entity in self.lm.entities)

    @property
    def width(self) -> int:
        """Width of the states."""
        return int(self.lm.config.hidden_size)


def load_start(recipe: Recipe) -> Start:
    """Load the encoder that a recipe names, or make the new one that it describes.

    What has no weights yet, such as a token head, is drawn by the seed.
    """
    if recipe.new is not None:
        name, loaded = "the new model", recipe.new.create(_texts(recipe), recipe.training.seed)
    else:
        name = recipe.encoder.name
        loaded = load_masked_lm(name, seed=recipe.training.seed)
    _check_model(name, loaded.model, recipe)
    longest = int(loaded.model.config.max_position_embeddings)
    if recipe.stream.max_length > longest:
        raise ConfigError(
            f"stream.max_length: {name} takes {longest} tokens at most, found "
            f"{recipe.stream.max_length}"
        )
    settings = EncoderSettings(pooling="mean", max_length=longest, lower=False)
    fingerprint = hash_encoder(loaded.model, loaded.tokenizer, settings)
    return Start(loaded.model, loaded.tokenizer, fingerprint)


def _texts(recipe: Recipe) -> Iterator[str]:
    """Give the texts that a new tokenizer is learnt from."""
    documents = iter(Shards.open(recipe.stream.shards))
    return (document.text for document in islice(documents, _TOKENISED))


def _check_model(name: str, model: Any, recipe: Recipe) -> None:
    """Refuse a model that the recipe does not fit."""
    if isinstance(model, KnowledgeBertForMaskedLM):
        if model.config.n_entities != len(model.entities):
            raise ConfigError(
                f"{name}: does not say which entities its {model.config.n_entities:,} rows are "
                "(entities.jsonl), so it cannot be trained further on annotated text"
            )
        _check_same(name, model, recipe.knowledge)
    elif not isinstance(model, BertForMaskedLM):
        raise ConfigError(f"{name}: expected a BERT, found {type(model).__name__}")
    elif recipe.knowledge:
        deepest = max(recipe.knowledge.layers.values(), default=0)
        if deepest > model.config.num_hidden_layers:
            raise ConfigError(
                f"knowledge.after: {name} has {model.config.num_hidden_layers} layers, found "
                f"{deepest}"
            )


def _check_same(name: str, model: Any, knowledge: KnowledgeConfig | None) -> None:
    """Refuse to change the knowledge layers that a model has."""
    if knowledge is None:
        return
    config = model.config
    theirs = {key: getattr(config, key) for key in knowledge.of_model()}
    ours = knowledge.of_model()
    if not (knowledge.tells and knowledge.vectors):  # else objectives read the relations there
        theirs |= {"dim": config.entity_dim, "vectors": None}
        ours |= {"dim": knowledge.dim, "vectors": knowledge.vectors}
    spelled = {"knowledge_after": "after", "freeze_entities": "freeze"}
    for key, value in theirs.items():
        if ours[key] != value:
            raise ConfigError(
                f"knowledge.{spelled.get(key, key)}: {name} has a knowledge layer with {value!r} "
                f"already, found {ours[key]!r}; set the same, or begin from a plain BERT"
            )


@dataclass(frozen=True, slots=True)
class Grafted:
    """A model with what its recipe puts in."""

    lm: Any
    n_drawn: int = 0
    """How many entities began at random, for want of a vector."""


def graft(
    start: Start,
    recipe: Recipe,
    ids: Sequence[str],
    kb: KnowledgeBase | None,
    graph: GraphOfEntities | None = None,
) -> Grafted:
    """Put the knowledge layers of a recipe into a model; those that are there already stay."""
    config = recipe.knowledge
    if config is None:
        return Grafted(start.lm)
    if start.entities is not None:
        check_contents(recipe.encoder.name, start.lm, config, graph)
        return Grafted(start.lm)
    table = entity_table(ids, config.vectors, dim=config.dim, seed=recipe.training.seed)
    lm = KnowledgeBertForMaskedLM.from_bert(
        start.lm,
        table.vectors,
        [_entity(kb, identifier, all_names=config.tells) for identifier in ids],
        graph={"neighbours": graph.neighbours, "types": graph.types} if graph else None,
        seed=recipe.training.seed,
        **config.of_model(),
    )
    return Grafted(lm, table.n_drawn)


def hash_knowledge(config: KnowledgeConfig | None) -> dict[str, str]:
    """Compute the hashes of the folders that the knowledge layers begin from."""
    places = {"vectors": config.vectors, "neighbours": config.neighbours} if config else {}
    return {
        name: hash_file(folder / MANIFEST)
        for name, folder in places.items()
        if folder and (folder / MANIFEST).exists()
    }


def _entity(kb: KnowledgeBase | None, identifier: str, *, all_names: bool) -> Entity:
    row = None if kb is None else kb.find_row(identifier)
    if kb is None or row is None:
        return Entity(identifier)
    names = tuple(name.text for name in kb.concept_at(row).names) if all_names else ()
    return Entity(identifier, kb.name_at(row), names)


def save_model(lm: Any, tokenizer: Any, folder: Path) -> None:
    """Write a model with its tokenizer and, if it has any, its entities."""
    with new_folder(folder, overwrite=True) as work, torch.no_grad(), quiet_transformers():
        lm.save_pretrained(work)
        tokenizer.save_pretrained(work)
