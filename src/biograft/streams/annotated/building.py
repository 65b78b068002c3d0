"""Pack annotated text once; find it again as long as it is made from the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from biograft.corpus.shards import AnnotatedDocument, Shards
from biograft.errors import ConfigError, OutputError, StoreError
from biograft.manifests import MANIFEST, file_sizes
from biograft.progress import Progress
from biograft.runs import hash_file, new_folder
from biograft.streams.annotated.config import AnnotatedTextConfig
from biograft.streams.annotated.entities import count_entities, read_entities
from biograft.streams.annotated.packed import (
    PACKED,
    PackedText,
    write_entities,
    write_sequences,
)
from biograft.streams.annotated.packing import Packer
from biograft.streams.annotated.tokenising import DocumentTokenizer, hash_tokenizer

_SPECIAL = {"first": "cls_token_id", "separator": "sep_token_id", "padding": "pad_token_id"}
_KEY_LENGTH = 12


def open_packed(
    config: AnnotatedTextConfig,
    tokenizer: Any,
    *,
    entities: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> PackedText:
    """Open the packed text of a configuration; pack it first if that was not done yet.

    ``tokenizer`` is a fast one of transformers. ``entities`` are the ids of a table that is there
    already, in the order of its rows; else the concepts of the text are its entities, the most
    frequent first.
    """
    shards = Shards.open(config.shards)
    made_from = _describe(config, tokenizer, entities)
    folder = config.cache or _place(config.shards, made_from)
    if not PACKED.is_at(folder):
        try:
            _build(folder, shards, (config, tokenizer, entities), made_from, progress)
        except OutputError:
            if not PACKED.is_at(folder):  # else another process was first
                raise
    packed = PackedText.open(folder)
    _check_same(folder, made_from, packed.manifest["made_from"])
    if not len(packed):
        raise ConfigError(f"stream.shards: {config.shards} holds no text to make sequences of")
    return packed


def _build(
    folder: Path,
    shards: Shards,
    wanted: tuple[AnnotatedTextConfig, Any, Sequence[str] | None],
    made_from: Mapping[str, Any],
    progress: Progress | None,
) -> None:
    config, tokenizer, ids = wanted
    special = _special_tokens(tokenizer)
    table = _entities(config, ids)
    rows = {entity: row for row, entity in enumerate(table["id"].to_pylist())}
    progress = progress or Progress(enabled=False)
    progress.start("tokens")
    packer = Packer(config, special["first"], special["separator"])
    documents = DocumentTokenizer(tokenizer, rows, config.min_score).tokenise(
        _counted(shards, progress), packer.counts
    )
    with new_folder(folder) as work:
        write_sequences(work, packer.pack(documents))
        write_entities(work, table)
        PACKED.write(work, {
            "made_from": made_from,
            "special": special,
            "n_entities": len(rows),
            "counts": packer.counts.to_json(),
            "files": file_sizes(work),
        })  # fmt: skip
    progress.finish()


def _entities(config: AnnotatedTextConfig, ids: Sequence[str] | None) -> pa.Table:
    if ids is not None:
        return count_entities(config.shards, ids)
    return read_entities(config.shards, config.min_count)


def _describe(
    config: AnnotatedTextConfig, tokenizer: Any, entities: Sequence[str] | None
) -> dict[str, Any]:
    """Say what decides the sequences, as it stands in the manifest."""
    return {
        "shards": hash_file(config.shards / MANIFEST),
        "tokenizer": hash_tokenizer(tokenizer),
        "entities": None if entities is None else _hash(list(entities)),
        **config.decisive(),
    }


def _place(shards: Path, made_from: Mapping[str, Any]) -> Path:
    """Name the folder beside the shards for what is made from these things."""
    name = shards.resolve().name
    return shards.resolve().with_name(f"{name}-packed-{_hash(made_from)[:_KEY_LENGTH]}")


def _check_same(folder: Path, wanted: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    for key, value in wanted.items():
        if found.get(key) != value:
            shown = (
                ""
                if isinstance(value, str) or key == "entities"
                else (f" (expected {value!r}, found {found.get(key)!r})")
            )
            raise StoreError(
                f"{folder}: was packed with other {key}{shown}; remove the folder, or name "
                "another place in stream.cache"
            )


def _special_tokens(tokenizer: Any) -> dict[str, int]:
    found = {name: getattr(tokenizer, key) for name, key in _SPECIAL.items()}
    for name, token in found.items():
        if token is None:
            raise ConfigError(
                f"encoder: its tokenizer has no {_SPECIAL[name].removesuffix('_id')}; choose an "
                "encoder of BERT's kind"
            )
    return found


def _counted(shards: Shards, progress: Progress) -> Iterator[AnnotatedDocument]:
    for number, document in enumerate(shards, 1):
        yield document
        progress.advance(1, number / len(shards))


def _hash(values: Any) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
