"""Arrays in a safetensors file, by its published layout: the core needs no package for it.

Eight bytes give the length of a JSON header, which gives kind, shape and place of every array;
then the arrays follow. What is read is mapped into memory.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from biograft.artifacts import Kind, file_sizes, new_file
from biograft.config import from_mapping
from biograft.errors import InputError
from biograft.graph.embedding.config import EmbeddingRecipe, ModelConfig
from biograft.graph.embedding.scoring import Tables
from biograft.graph.triples import graph_fingerprint
from biograft.kb import KnowledgeBase

_KINDS = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U8": "|u1"}
_CODES = {np.dtype(kind): code for code, kind in _KINDS.items()}
_METADATA = "__metadata__"
_ALIGNMENT = 8


def write_tensors(
    path: Path, arrays: Mapping[str, npt.NDArray[Any]], metadata: Mapping[str, str] | None = None
) -> None:
    """Write arrays by name; the file appears when it is whole."""
    header: dict[str, Any] = {_METADATA: dict(metadata)} if metadata else {}
    place = 0
    for name, array in arrays.items():
        header[name] = {
            "dtype": _CODES[array.dtype.newbyteorder("=")],
            "shape": list(array.shape),
            "data_offsets": [place, place + array.nbytes],
        }
        place += array.nbytes
    text = json.dumps(header, ensure_ascii=False).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    with new_file(path, overwrite=True) as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for array in arrays.values():
            little = array.astype(array.dtype.newbyteorder("<"), copy=False)
            file.write(np.ascontiguousarray(little).reshape(-1).view(np.uint8).data)


def read_tensors(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Map the arrays of a file into memory; ``ValueError`` where it is damaged."""
    whole = np.memmap(path, np.uint8, "r")
    start = 8 + int.from_bytes(whole[:8].tobytes(), "little")
    header = json.loads(whole[8:start].tobytes())
    if not isinstance(header, dict):
        raise ValueError("its header is no table of arrays")
    return {
        name: _map(whole[start:], name, entry)
        for name, entry in header.items()
        if name != _METADATA
    }


def _map(data: npt.NDArray[np.uint8], name: str, entry: Any) -> npt.NDArray[Any]:
    try:
        first, last = entry["data_offsets"]
        kind, shape = np.dtype(_KINDS[entry["dtype"]]), tuple(entry["shape"])
        size = kind.itemsize * math.prod(shape)
    except (KeyError, TypeError) as error:
        raise ValueError(f"what it says of {name} cannot be read") from error
    if not 0 <= first <= last <= len(data) or last - first != size:
        raise ValueError(f"{name} is cut short")
    return np.ndarray(shape, kind, data, first)


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
