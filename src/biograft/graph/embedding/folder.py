"""Embeddings on disk: a folder with the vectors, the ids of their rows, and a manifest.

==========================  ========================================================
``embeddings.safetensors``  ``entity``, ``relation`` and, of TransR, ``projection``
``ids.json``                the ids of entities and the names of relations, by row
==========================  ========================================================

Row k of ``entity`` is row k of the store's concepts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from biograft.config import from_mapping
from biograft.errors import InputError
from biograft.graph.embedding.config import EmbeddingRecipe, ModelConfig
from biograft.graph.embedding.scoring import Tables
from biograft.graph.embedding.tensors import read_tensors, write_tensors
from biograft.graph.triples import graph_fingerprint
from biograft.kb import KnowledgeBase
from biograft.manifests import Kind, file_sizes
from biograft.runs import new_file

EMBEDDINGS = Kind(
    format="biograft-graph-embeddings",
    version=1,
    called="folder of embeddings",
    remedy="make it again with `biograft graph embed`",
    absent="make one with `biograft graph embed`",
    keys=("kb", "graph", "recipe", "n_entities", "n_relations", "files"),
)
_TENSORS, _IDS = "embeddings.safetensors", "ids.json"
_ROWS_AT_ONCE = 10_000


class Embeddings:
    """Vectors of the entities and relations of a store, mapped into memory."""

    def __init__(self, tables: Tables, manifest: dict[str, Any], folder: Path) -> None:
        self.tables, self.manifest, self.folder = tables, manifest, folder
        self.model: ModelConfig = from_mapping(EmbeddingRecipe, manifest["recipe"]).model
        self._ids: dict[str, list[str]] = {}

    @classmethod
    def open(cls, folder: str | Path) -> Embeddings:
        """Open a folder of embeddings."""
        folder = Path(folder)
        manifest = EMBEDDINGS.read(folder)
        EMBEDDINGS.check_files(folder, manifest)
        try:
            arrays = read_tensors(folder / _TENSORS)
            empty = np.zeros((0, *arrays["entity"].shape[1:], 0), np.float32)
            tables = Tables(arrays["entity"], arrays["relation"], arrays.get("projection", empty))
        except (ValueError, KeyError) as error:
            raise EMBEDDINGS.damaged(folder / _TENSORS, error) from error
        return cls(tables, manifest, folder)

    @property
    def entity_ids(self) -> list[str]:
        """The ids of entities, by row."""
        return self._read_ids("entities")

    @property
    def relation_names(self) -> list[str]:
        """The names of relations, by row."""
        return self._read_ids("relations")

    def _read_ids(self, name: str) -> list[str]:
        if not self._ids:
            try:
                self._ids = json.loads((self.folder / _IDS).read_text(encoding="utf-8"))
            except (OSError, ValueError) as error:
                raise EMBEDDINGS.damaged(self.folder / _IDS, error) from error
        return self._ids[name]

    def write_text(self, path: Path, *, overwrite: bool = False) -> None:
        """Write the entities as text: ``N dim``, then a line of id and numbers for each.

        Blanks in an id become ``_``, since blanks part the numbers.
        """
        words = ["_".join(identifier.split()) for identifier in self.entity_ids]
        if len(set(words)) < len(words):
            raise InputError("ids differ by blanks alone, which a text file cannot tell", path=path)
        with new_file(path, overwrite=overwrite) as file:
            file.write(f"{len(words)} {self.tables.entity.shape[1]}\n".encode())
            for lines in self._lines(words):
                file.write(lines.encode())

    def _lines(self, words: list[str]) -> Iterator[str]:
        for first in range(0, len(words), _ROWS_AT_ONCE):
            rows = self.tables.entity[first : first + _ROWS_AT_ONCE].tolist()
            yield "".join(
                f"{word} {' '.join(format(value, '.6g') for value in row)}\n"
                for word, row in zip(words[first : first + _ROWS_AT_ONCE], rows, strict=True)
            )


def write_embeddings(
    folder: Path, tables: Tables, base: KnowledgeBase, content: dict[str, Any]
) -> dict[str, Any]:
    """Write the files of a folder, the manifest last."""
    arrays = {name: table for name, table in tables._asdict().items() if len(table)}
    write_tensors(folder / _TENSORS, arrays, {"format": EMBEDDINGS.format})
    names = list(base.relation_names)
    if len(tables.relation) > len(names):
        names += [f"{name} (inverse)" for name in names]
    ids = {"entities": [base.id_at(row) for row in range(len(base))], "relations": names}
    with new_file(folder / _IDS) as file:
        file.write(json.dumps(ids, ensure_ascii=False).encode())
    sizes = {"n_entities": len(tables.entity), "n_relations": len(names)}
    told = {"kb": str(base.folder.resolve()), "graph": graph_fingerprint(base)}
    return EMBEDDINGS.write(folder, {**told, **sizes, **content, "files": file_sizes(folder)})
