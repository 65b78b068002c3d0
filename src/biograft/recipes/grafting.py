"""Begin a language model as a recipe says, with a knowledge layer or plain; and write it down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.nn.knowledge import KnowledgeBertForMaskedLM
from biograft.nn.knowledge.entities import Entity, entity_table
from biograft.nn.loading import load_masked_lm, quiet_transformers
from biograft.nn.saving import hash_encoder
from biograft.nn.settings import EncoderSettings
from biograft.recipes.recipe import Recipe
from biograft.runs import new_folder


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
    """Load the encoder that a recipe names; a token head that it lacks is drawn by the seed."""
    config = recipe.encoder
    loaded = load_masked_lm(config.name, seed=recipe.training.seed)
    longest = int(loaded.model.config.max_position_embeddings)
    if recipe.stream.max_length > longest:
        raise ConfigError(
            f"stream.max_length: {config.name} takes {longest} tokens at most, found "
            f"{recipe.stream.max_length}"
        )
    settings = EncoderSettings(pooling="mean", max_length=longest, lower=False)
    fingerprint = hash_encoder(loaded.model, loaded.tokenizer, settings)
    return Start(loaded.model, loaded.tokenizer, fingerprint)


def graft(start: Start, recipe: Recipe, ids: Sequence[str], kb: KnowledgeBase | None) -> Any:
    """Put the knowledge layer of a recipe into a model; one that is there already stays."""
    config = recipe.knowledge
    if config is None or start.entities is not None:
        return start.lm
    table = entity_table(ids, config.vectors, dim=config.dim, seed=recipe.training.seed)
    settings = asdict(config)
    return KnowledgeBertForMaskedLM.from_bert(
        start.lm,
        table.vectors,
        [Entity(identifier, _name(kb, identifier)) for identifier in ids],
        seed=recipe.training.seed,
        knowledge=settings["kind"],
        knowledge_after=settings["after"],
        n_nearest=settings["n_nearest"],
        fusion_norm=settings["fusion_norm"],
        freeze_entities=settings["freeze"],
    )


def _name(kb: KnowledgeBase | None, identifier: str) -> str:
    row = None if kb is None else kb.find_row(identifier)
    return "" if kb is None or row is None else kb.name_at(row)


def save_model(lm: Any, tokenizer: Any, folder: Path) -> None:
    """Write a model with its tokenizer and, if it has any, its entities."""
    with new_folder(folder, overwrite=True) as work, torch.no_grad(), quiet_transformers():
        lm.save_pretrained(work)
        tokenizer.save_pretrained(work)
