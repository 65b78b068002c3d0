"""The entities of an entity table (``entities.jsonl``), and their vectors.

Line k of the file, which lies beside the weights, is row k:
``{"id": "MESH:D009203", "name": "Heart Attack", "names": ["MI", "Heart Attack"]}``. Models that
take entity inputs have all names there, which are searched in texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from biograft.arrays import Float32s
from biograft.artifacts import new_file
from biograft.errors import ConfigError, FormatError, StoreError

ENTITIES = "entities.jsonl"
_ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True, slots=True)
class TableEntity:
    """The entity of a row of the table."""

    id: str
    """Id of the concept."""
    name: str = ""
    """Its preferred name; empty if unknown."""
    names: tuple[str, ...] = ()
    """The names that are searched in texts."""

    def to_json(self) -> dict[str, Any]:
        """Return the entity as plain values."""
        content = {"id": self.id, "name": self.name}
        return {**content, "names": list(self.names)} if self.names else content


def write_entities(folder: Path, entities: Iterable[TableEntity]) -> None:
    """Write the entities beside the weights, in the order of their rows.

    Args:
        folder: Folder of the weights.
        entities: Entities, in the order of their rows.
    """
    with new_file(folder / ENTITIES, overwrite=True) as file:
        for entity in entities:
            line = json.dumps(entity.to_json(), ensure_ascii=False)
            file.write(f"{line}\n".encode())


def read_entities(folder: Path, n_entities: int | None = None) -> tuple[TableEntity, ...]:
    """Read the entities beside some weights; empty if there is no file.

    Args:
        folder: Folder of the weights.
        n_entities: Number of rows of the table, which is compared; None: it is not.
    """
    path = folder / ENTITIES
    if not path.is_file():
        return ()
    with path.open("rb") as file:
        entities = tuple(_read_line(path, *line) for line in enumerate(file, start=1))
    if n_entities is not None and len(entities) != n_entities:
        raise StoreError(
            f"{path}: names {len(entities):,} entities, and the table beside it has "
            f"{n_entities:,} rows; they belong to different models, get both again"
        )
    return entities


def _read_line(path: Path, number: int, line: bytes) -> TableEntity:
    try:
        content = json.loads(line)
        identifier, name = content["id"], content.get("name", "")
        names = tuple(content.get("names", ()))
        json.dumps([identifier, name, *names], ensure_ascii=False).encode()  # no lone surrogate
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        identifier, name, names = None, None, ()
    if not all(isinstance(text, str) for text in (identifier, name, *names)):
        raise FormatError(
            "expected an object with id and name, both texts, and perhaps a list of names",
            path=path,
            line=number,
            text=line.decode("utf-8", "replace").strip(),
        )
    return TableEntity(identifier, name, names)


@dataclass(frozen=True, slots=True)
class EntityTable:
    """The vectors of entities, and the number of random ones."""

    vectors: Float32s
    """(entities, dim)"""
    n_random: int


def entity_table(
    ids: Sequence[str], vectors: str | Path | None = None, *, dim: int = 100, seed: int = 0
) -> EntityTable:
    """Load the vectors of entities from a folder of ``biograft graph embed``.

    Entities without a vector, and all without a folder, get random ones, about as long as the
    others, about 1 without others.

    Args:
        ids: Ids of the entities, in the order of the rows.
        vectors: Folder of ``biograft graph embed``.
        dim: Length of the vectors without a folder.
        seed: Seed of random vectors.
    """
    rng = np.random.default_rng(seed)
    if vectors is None:
        return EntityTable(_random_vectors(rng, (len(ids), dim), 1.0), len(ids))
    from biograft.graph.embedding import Embeddings

    embeddings = Embeddings.open(vectors)
    given = embeddings.tables.entity
    row_of = {identifier: row for row, identifier in enumerate(embeddings.entity_ids)}
    rows = np.fromiter((row_of.get(identifier, -1) for identifier in ids), np.int64, len(ids))
    known = rows >= 0
    if len(ids) and not known.any():
        raise ConfigError(
            f"{vectors}: has vectors of none of the {len(ids):,} entities (first {ids[0]!r}); "
            "embed the graph of the knowledge base that the text was annotated with"
        )
    own, places = rows[known], np.flatnonzero(known)
    parts = [slice(n, n + _ROWS_AT_ONCE) for n in range(0, len(own), _ROWS_AT_ONCE)]
    lengths = [np.linalg.norm(given[own[part]].astype(np.float32), axis=1) for part in parts]
    length = float(np.concatenate(lengths).mean()) if lengths else 1.0
    table = _random_vectors(rng, (len(ids), given.shape[1]), length)
    for part in parts:
        table[places[part]] = given[own[part]]
    return EntityTable(table, int(len(ids) - known.sum()))


def _random_vectors(rng: np.random.Generator, shape: tuple[int, int], length: float) -> Float32s:
    table = rng.standard_normal(shape, np.float32)
    table *= np.float32(length / np.sqrt(shape[1]))
    return table
