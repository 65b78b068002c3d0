"""Which entity each row of a table stands for (``entities.jsonl``), and its vector.

Line k of the file, which lies beside the weights, is row k:
``{"id": "MESH:D009203", "name": "Heart Attack", "names": ["MI", "Heart Attack"]}``. Models that
must be told which entities a text names have all names there, to find them by.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from biograft.artifacts import new_file
from biograft.errors import ConfigError, FormatError, StoreError

ENTITIES = "entities.jsonl"


@dataclass(frozen=True, slots=True)
class Entity:
    """What a row of the table stands for."""

    id: str
    name: str = ""
    names: tuple[str, ...] = ()
    """All names that it is found by in text."""

    def to_json(self) -> dict[str, Any]:
        """Give it as plain values."""
        told = {"id": self.id, "name": self.name}
        return {**told, "names": list(self.names)} if self.names else told


def write_entities(folder: Path, entities: Iterable[Entity]) -> None:
    """Write the entities beside the weights, in the order of their rows."""
    with new_file(folder / ENTITIES, overwrite=True) as file:
        for entity in entities:
            line = json.dumps(entity.to_json(), ensure_ascii=False)
            file.write(f"{line}\n".encode())


def read_entities(folder: Path, n_entities: int) -> tuple[Entity, ...]:
    """Read the entities beside some weights; none if they were never written."""
    path = folder / ENTITIES
    if not path.is_file():
        return ()
    with path.open("rb") as file:
        entities = tuple(_read_line(path, *line) for line in enumerate(file, start=1))
    if len(entities) != n_entities:
        raise StoreError(
            f"{path}: names {len(entities):,} entities, and the table beside it has "
            f"{n_entities:,} rows; they belong to different models, get both again"
        )
    return entities


def _read_line(path: Path, number: int, line: bytes) -> Entity:
    try:
        content = json.loads(line)
        identifier, name = content["id"], content.get("name", "")
        names = tuple(content.get("names", ()))
    except (ValueError, KeyError, TypeError, AttributeError):
        identifier, name, names = None, None, ()
    if not all(isinstance(text, str) for text in (identifier, name, *names)):
        raise FormatError(
            "expected an object with id and name, both texts, and perhaps a list of names",
            path=path, line=number, text=line.decode("utf-8", "replace").strip(),
        )  # fmt: skip
    return Entity(identifier, name, names)


@dataclass(frozen=True, slots=True)
class EntityTable:
    """The vectors of some entities, and how many had to be drawn."""

    vectors: npt.NDArray[np.float32]
    """(entities, dim)"""
    n_drawn: int


def entity_table(
    ids: Sequence[str], vectors: str | Path | None = None, *, dim: int = 100, seed: int = 0
) -> EntityTable:
    """Take the vectors of entities from a folder of ``biograft graph embed``.

    Entities that it lacks, and all without a folder, are drawn: directions at random, about as
    long as the others, about 1 without others. ``dim`` counts only without a folder.
    """
    draw = np.random.default_rng(seed)
    if vectors is None:
        return EntityTable(_draw(draw, (len(ids), dim), 1.0), len(ids))
    from biograft.graph.embedding import Embeddings

    embeddings = Embeddings.open(vectors)
    given = embeddings.tables.entity
    place = {identifier: row for row, identifier in enumerate(embeddings.entity_ids)}
    rows = np.fromiter((place.get(identifier, -1) for identifier in ids), np.int64, len(ids))
    known = rows >= 0
    if len(ids) and not known.any():
        raise ConfigError(
            f"{vectors}: has vectors of none of the {len(ids):,} entities (first {ids[0]!r}); "
            "embed the graph of the knowledge base that the text was annotated with"
        )
    found = given[rows[known]].astype(np.float32)
    length = float(np.linalg.norm(found, axis=1).mean()) if len(found) else 1.0
    table = _draw(draw, (len(ids), given.shape[1]), length)
    table[known] = found
    return EntityTable(table, int(len(ids) - known.sum()))


def _draw(
    draw: np.random.Generator, shape: tuple[int, int], length: float
) -> npt.NDArray[np.float32]:
    table = draw.standard_normal(shape, np.float32)
    table *= np.float32(length / np.sqrt(shape[1]))
    return table
