"""The published weights of KeBioLM: two encoders with an entity memory between them.

Sizes come from the weights, not from the configuration, which often has default values. From a
fine-tuned checkpoint, with a ``classifier`` and no token head, the encoder is imported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Set
from pathlib import Path
from typing import Any

from torch import Tensor

from biograft.errors import FormatError, InputError
from biograft.models.checkpoints.layouts import Converted
from biograft.models.checkpoints.published import Published, load_weights
from biograft.models.knowledge import (
    KnowledgeBertConfig,
    KnowledgeBertForMaskedLM,
    KnowledgeBertModel,
    TableEntity,
)
from biograft.models.knowledge_layers import MEMORY

_TABLE = "bert.entity_linker.entity_embeddings.weight"
_DETECTOR = "bert.mention_detector.weight"
_NAMES = {
    "bert.embeddings": "bert.embeddings",
    "bert.mention_detector": "knowledge.entity_memory.detector",
    "bert.entity_linker.entity_embeddings": "entity_table",
    "bert.entity_linker.mention_to_entity_projection": "knowledge.entity_memory.mention_to_entity",
    "bert.entity_context_projection": "knowledge.entity_memory.entity_to_token",
    "bert.layer_norm": "knowledge.entity_memory.norm",
}
"""Published names, except of the layers, and ours in the model without head."""
_LAYER = re.compile(r"bert\.(context_encoder|recontext_encoder)\.layer\.(\d+)\.(.+)")
_AS_THEY_ARE = (
    *("num_attention_heads", "hidden_act", "layer_norm_eps", "initializer_range"),
    *("hidden_dropout_prob", "attention_probs_dropout_prob", "pad_token_id"),
)
"""Fields that do not follow from the weights, with the same name in both configurations."""
_ENTITIES = "entity.jsonl"
_UNUSED = re.compile(r"\[unused\d+\]")
"""Names of table rows without an entity."""


class KeBioLM:
    """The published layout of KeBioLM."""

    def recognise(self, keys: Set[str]) -> bool:
        """Whether weights with these names have the layout."""
        return {_TABLE, _DETECTOR} <= keys

    def convert(self, published: Published, *, as_published: bool) -> Converted:
        """Build the model with its entity memory."""
        config = _read_config(published, as_published=as_published)
        has_head = any(key.startswith("cls.") for key in published.weights)
        model = (KnowledgeBertForMaskedLM if has_head else KnowledgeBertModel)(config)
        prefix = "model." if has_head else ""
        weights: dict[str, Tensor] = {}
        left_out = []
        for key, value in published.weights.items():
            name = _rename(key, _after(config), prefix)
            if name is None or (key.startswith("cls.") and name not in model.state_dict()):
                left_out.append(key)
            else:
                weights[name] = value
        optional = {name for name in model.state_dict() if ".decoder." in name}
        load_weights(model, weights, published, called="KeBioLM", optional=optional)
        model.entities = _read_entities(published.folder / _ENTITIES, config.n_entities)
        return _describe(model, left_out)


KEBIOLM = KeBioLM()


def _describe(model: Any, left_out: list[str]) -> Converted:
    config, notes = model.config, []
    n_unused = sum(_UNUSED.fullmatch(entity.id) is not None for entity in model.entities)
    facts = {
        "n_layers": config.num_hidden_layers,
        "knowledge_after": _after(config),
        "n_entities": config.n_entities,
        "entity_dim": config.entity_dim,
        "named": bool(model.entities),
        "n_unused_rows": n_unused,
        "token_head": model.get_output_embeddings() is not None,
    }
    if not facts["named"]:
        notes.append("no entity.jsonl: the rows of the entity table have no names")
    if n_unused:
        notes.append(f"entity.jsonl: {n_unused:,} rows of the entity table have no entity")
    if not facts["token_head"]:
        notes.append("no token head: a fine-tuned checkpoint, imported as an encoder")
    return Converted(
        model=model,
        facts=facts,
        summary=f"{config.num_hidden_layers} layers, knowledge after layer "
        f"{_after(config)}, {config.n_entities:,} entities of {config.entity_dim}",
        notes=tuple(notes),
        left_out=tuple(sorted(left_out)),
    )


def _after(config: Any) -> int:
    after: int = config.knowledge_layers[MEMORY]["after"]
    return after


def _rename(key: str, n_text_layers: int, prefix: str) -> str | None:
    """Return our name of a weight, or None if our model does not have it."""
    if key.startswith("cls."):
        return key
    if layer := _LAYER.fullmatch(key):
        encoder, index, rest = layer.groups()
        shift = n_text_layers if encoder == "recontext_encoder" else 0
        return f"{prefix}bert.encoder.layer.{int(index) + shift}.{rest}"
    for theirs, ours in _NAMES.items():
        if key.startswith(f"{theirs}."):
            return prefix + ours + key.removeprefix(theirs)
    return None


def _read_config(published: Published, *, as_published: bool) -> KnowledgeBertConfig:
    config, size = published.config, published.size
    counts = dict.fromkeys(("context_encoder", "recontext_encoder"), 0)
    for key in published.weights:
        if layer := _LAYER.fullmatch(key):
            counts[layer[1]] = max(counts[layer[1]], int(layer[2]) + 1)
    values = {name: config[name] for name in _AS_THEY_ARE if name in config}
    return KnowledgeBertConfig(
        **values,
        vocab_size=size("bert.embeddings.word_embeddings.weight"),
        hidden_size=size("bert.embeddings.word_embeddings.weight", 1),
        max_position_embeddings=size("bert.embeddings.position_embeddings.weight"),
        type_vocab_size=size("bert.embeddings.token_type_embeddings.weight"),
        intermediate_size=size("bert.context_encoder.layer.0.intermediate.dense.weight"),
        num_hidden_layers=sum(counts.values()),
        knowledge_layers={
            MEMORY: {
                "after": counts["context_encoder"],
                "n_nearest": config.get("max_candidate_entities", 100),
                "max_mentions": config.get("max_mentions", 0),
                "fusion_norm": True,
                "compat": as_published,
            }
        },
        n_entities=size(_TABLE),
        entity_dim=size(_TABLE, 1),
    )


def _read_entities(path: Path, n_entities: int) -> tuple[TableEntity, ...]:
    """Read the ``entity_name`` of each row, which the published code uses as an id, if present.

    The authors' ids may have gaps, since their table has a row for each number up to the highest
    id. A row without an entity is called ``[unused7]`` by its number.
    """
    if not path.is_file():
        return ()
    names: dict[int, str] = {}
    seen: set[str] = set()
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                content = json.loads(line)
                row, name = int(content["id"]), str(content["entity_name"])
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise FormatError(
                    "expected an object with entity_name and id",
                    path=path,
                    line=number,
                    text=line.decode("utf-8", "replace").strip(),
                ) from error
            if row in names or name in seen or row < 0:
                raise FormatError(
                    "expected ids from 0 on and names, each once",
                    path=path,
                    line=number,
                    text=line.decode("utf-8", "replace").strip(),
                )
            names[row] = name
            seen.add(name)
    if max(names, default=-1) != n_entities - 1:
        raise InputError(
            f"expected ids up to {n_entities - 1:,}, the last row of the table, found them up to "
            f"{max(names, default=-1):,}",
            path=path,
            remedy="give the file that belongs to the weights",
        )
    return tuple(TableEntity(names.get(row, f"[unused{row}]")) for row in range(n_entities))
