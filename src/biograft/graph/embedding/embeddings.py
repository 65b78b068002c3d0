"""Graph embeddings on disk: a folder with a safetensors file, ids and a manifest.

The safetensors layout is read and written here, so that the core needs no package for it: eight
bytes with the length of a JSON header, the header with dtype, shape and offsets, then the arrays.
Arrays are memory-mapped.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from biograft.arrays import Array, Bytes
from biograft.artifacts import (
    MANIFEST,
    ArtifactKind,
    check_length,
    describe_files,
    hash_file,
    new_file,
)
from biograft.config import from_mapping
from biograft.errors import ConfigError, InputError
from biograft.graph.config import PROJECTED, ModelConfig
from biograft.graph.embedding.loops import Tables, table_shapes
from biograft.graph.triples import graph_fingerprint
from biograft.kb import KnowledgeBase

_KINDS = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U8": "|u1"}
_CODES = {np.dtype(kind): code for code, kind in _KINDS.items()}
_METADATA = "__metadata__"
_ALIGNMENT = 8


def write_tensors(
    path: Path, arrays: Mapping[str, Array], metadata: Mapping[str, str] | None = None
) -> None:
    """Write arrays by name; the file appears when it is complete.

    Args:
        path: The file to write.
        arrays: Arrays by name.
        metadata: Texts of the header.
    """
    header: dict[str, Any] = {_METADATA: dict(metadata)} if metadata else {}
    offset = 0
    for name, array in arrays.items():
        header[name] = {
            "dtype": _CODES[array.dtype.newbyteorder("=")],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        offset += array.nbytes
    text = json.dumps(header, ensure_ascii=False).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    with new_file(path, overwrite=True) as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for array in arrays.values():
            little = array.astype(array.dtype.newbyteorder("<"), copy=False)
            file.write(np.ascontiguousarray(little).reshape(-1).view(np.uint8).data)


def read_tensors(path: Path) -> dict[str, Array]:
    """Memory-map the arrays of a file; raise ``ValueError`` if it is damaged.

    Args:
        path: The file.

    Returns:
        Arrays by name.

    Raises:
        ValueError: The file is damaged.
    """
    data = np.memmap(path, np.uint8, "r")
    start = 8 + int.from_bytes(data[:8].tobytes(), "little")
    header = json.loads(data[8:start].tobytes())
    if not isinstance(header, dict):
        raise ValueError("its header is no table of arrays")
    return {
        name: _map(data[start:], name, entry) for name, entry in header.items() if name != _METADATA
    }


def _map(data: Bytes, name: str, entry: Any) -> Array:
    try:
        first, last = entry["data_offsets"]
        kind, shape = np.dtype(_KINDS[entry["dtype"]]), tuple(entry["shape"])
        size = kind.itemsize * math.prod(shape)
    except (KeyError, TypeError) as error:
        raise ValueError(f"the entry of {name} cannot be read") from error
    if not 0 <= first <= last <= len(data) or last - first != size:
        raise ValueError(f"{name} is cut short")
    return np.ndarray(shape, kind, data, first)


EMBEDDINGS = ArtifactKind(
    format="biograft-graph-embeddings",
    version=1,
    called="folder of embeddings",
    remedy="make it again with `biograft graph embed`",
    absent="make one with `biograft graph embed`",
    keys=("kb", "graph", "recipe", "n_entities", "n_relations", "files"),
)
_TENSORS, _IDS = "embeddings.safetensors", "ids.json"


class Embeddings:
    """Vectors of the entities and relations of a store, memory-mapped.

    Args:
        tables: Vectors of the entities and relations.
        manifest: Manifest of the folder.
        folder: Folder they were opened from.
    """

    def __init__(self, tables: Tables, manifest: dict[str, Any], folder: Path) -> None:
        self.tables, self.manifest, self.folder = tables, manifest, folder
        self.model: ModelConfig = from_mapping(ModelConfig, manifest["recipe"]["model"])

    @classmethod
    def open(cls, folder: str | Path) -> Embeddings:
        """Open a folder of embeddings.

        Args:
            folder: The folder.

        Returns:
            The embeddings.

        Raises:
            StoreError: The folder is missing or damaged.
        """
        folder = Path(folder)
        manifest = EMBEDDINGS.read(folder)
        EMBEDDINGS.check_files(folder, manifest)
        try:
            model = from_mapping(ModelConfig, manifest["recipe"]["model"])
            shapes = table_shapes(manifest["n_entities"], manifest["n_relations"], model)
            arrays = read_tensors(folder / _TENSORS)
            if model.kind != PROJECTED:
                arrays["projection"] = np.zeros(shapes[2], np.float32)
            tables = Tables(*(arrays[name] for name in Tables._fields))
            for name, table, shape in zip(Tables._fields, tables, shapes, strict=True):
                if table.dtype not in (np.float32, np.float64):
                    raise ValueError(f"{name}: expected 32 or 64 bits, found {table.dtype}")
                check_length(name, table, *shape)
        except (ValueError, KeyError, TypeError) as error:
            raise EMBEDDINGS.damaged(folder / _TENSORS, error) from error
        return cls(tables, manifest, folder)

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the manifest, which names the recipe, the graph and the losses."""
        return hash_file(self.folder / MANIFEST)

    @property
    def entity_ids(self) -> list[str]:
        """The ids of entities, by row."""
        return self._ids["entities"]

    @property
    def relation_names(self) -> list[str]:
        """The names of relations, by row."""
        return self._ids["relations"]

    @cached_property
    def _ids(self) -> dict[str, list[str]]:
        try:
            ids: dict[str, list[str]] = json.loads((self.folder / _IDS).read_bytes())
            for key in ("entities", "relations"):
                if len(ids[key]) != self.manifest[f"n_{key}"]:
                    raise ValueError(f"{len(ids[key])} {key}")
        except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
            raise EMBEDDINGS.damaged(self.folder / _IDS, error) from error
        return ids

    def write_text(self, path: Path, *, overwrite: bool = False) -> None:
        """Write the entities in word2vec's text format: ``N dim``, then ids and vectors.

        Spaces in an id become ``_``, since spaces separate the numbers.

        Args:
            path: The file to write.
            overwrite: Replace a file.

        Raises:
            InputError: Ids differ in whitespace only.
        """
        ids = ["_".join(identifier.split()) for identifier in self.entity_ids]
        if len(set(ids)) < len(ids):
            raise InputError(
                "some ids differ in whitespace only, which the text format cannot hold", path=path
            )
        with new_file(path, overwrite=overwrite) as file:
            file.write(f"{len(ids)} {self.tables.entity.shape[1]}\n".encode())
            for identifier, row in zip(ids, self.tables.entity, strict=True):
                numbers = " ".join(format(value, ".6g") for value in row.tolist())
                file.write(f"{identifier} {numbers}\n".encode())


_TOLERANCE = 1e-3
"""By how much norms may exceed a bound after steps in 32 bits."""


def start_tables(start: Embeddings, model: ModelConfig, graph: str) -> Tables:
    """Return the vectors that a model starts training with, those of a folder of embeddings.

    Vectors of TransE fit a TransR of the same dimensions whose projections start as the identity:
    its first loss is then that of TransE.

    Args:
        start: The folder.
        model: The model to train.
        graph: Fingerprint of the graph to train on.

    Returns:
        Vectors and projections in 32 bits.

    Raises:
        ConfigError: They do not fit the model or the graph.
    """
    tables, where = start.tables, start.folder
    if start.manifest["graph"] != graph:
        raise ConfigError(
            f"--start-from: {where} was made from another knowledge base; embed this one first"
        )
    theirs = {"dim": start.model.dim, "width": start.model.width, "inverse": start.model.inverse}
    for key, found in theirs.items():
        if (wanted := getattr(model, key)) != found:
            name = "relation_dim" if key == "width" else key
            raise ConfigError(
                f"--start-from: {where} has model.{name} = {found}, the recipe {wanted}; set the "
                "same for both"
            )
    projected = len(tables.projection) > 0
    if model.kind != PROJECTED and projected:
        raise ConfigError(f"--start-from: {where} is of TransR; start TransE from TransE")
    if model.kind == PROJECTED and not projected and model.projection != "identity":
        raise ConfigError(
            f"model.projection: expected identity with --start-from {where}, whose vectors no "
            f"projection has changed, found {model.projection}"
        )
    for key, table in (("entity_bound", tables.entity), ("relation_bound", tables.relation)):
        if (bound := getattr(model, key)) == "none" or not len(table):
            continue
        norms = np.linalg.norm(table, axis=1)
        low, high = float(norms.min()), float(norms.max())
        if high > 1 + _TOLERANCE or (bound == "unit" and low < 1 - _TOLERANCE):
            raise ConfigError(
                f"--start-from: {where} has vectors of norm {low:.2f} to {high:.2f}, and the "
                f"recipe's model.{key} is {bound}; make them with --set model.{key}={bound}"
            )
    return Tables(*(np.array(table, np.float32) for table in tables))


def write_embeddings(
    folder: Path, tables: Tables, base: KnowledgeBase, content: dict[str, Any]
) -> dict[str, Any]:
    """Write a folder of embeddings, the manifest last.

    Args:
        folder: The folder to write to.
        tables: The vectors.
        base: The knowledge base of the graph.
        content: What the manifest says besides.

    Returns:
        The manifest.
    """
    arrays = {name: table for name, table in tables._asdict().items() if len(table)}
    write_tensors(folder / _TENSORS, arrays, {"format": EMBEDDINGS.format})
    names = list(base.relation_names)
    if len(tables.relation) > len(names):
        names += [f"{name} (inverse)" for name in names]
    ids = {"entities": [base.id_at(row) for row in range(len(base))], "relations": names}
    with new_file(folder / _IDS) as file:
        file.write(json.dumps(ids, ensure_ascii=False).encode())
    sizes = {"n_entities": len(tables.entity), "n_relations": len(names)}
    provenance = {"kb": str(base.folder.resolve()), "graph": graph_fingerprint(base)}
    files = describe_files(folder)
    return EMBEDDINGS.write(folder, {**provenance, **sizes, **content, "files": files})
