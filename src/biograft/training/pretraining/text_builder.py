"""Open packed text, or build it from annotated shards; the entities of its table."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from biograft.artifacts import MANIFEST, describe_files, hash_file, new_folder, sole_writer
from biograft.compute import n_cores
from biograft.errors import ConfigError, OutputError, StoreError
from biograft.kb import KnowledgeBase
from biograft.progress import Progress
from biograft.text.segmentation.folder import SEGMENTATION
from biograft.text.shards import SHARDS, Shards
from biograft.training.objectives.examples import CONSISTENT, HEAD_OFFSET, SEGMENT_ENDS
from biograft.training.pretraining.packed_text import PACKED, PackedText, write_entities
from biograft.training.pretraining.stream_configs import AnnotatedTextConfig
from biograft.training.pretraining.substitution import count_forms, describe_substitution
from biograft.training.pretraining.text_parts import (
    PackingJob,
    join_parts,
    list_parts,
    open_plan,
    pack_parts,
    sum_counts,
)
from biograft.training.pretraining.tokenisation import (
    SEGMENTS_VERSION,
    WORDS_VERSION,
    hash_tokenizer,
)

FREQUENCIES = "frequencies.parquet"


def read_entities(shards: Path, min_count: int) -> pa.Table:
    """Return the concepts with a minimum frequency: ``id`` and ``count``, most frequent first."""
    counted = _read_frequencies(shards)
    frequent = counted.filter(pc.greater_equal(counted["count"], min_count))
    return frequent.sort_by([("count", "descending"), ("id", "ascending")])


def count_entities(shards: Path, ids: Sequence[str]) -> pa.Table:
    """Return the frequencies of given entities, in their order."""
    if len(set(ids)) < len(ids):
        raise ConfigError(
            "entities: an id occurs twice; each row of the table must be another entity"
        )
    counted = _read_frequencies(shards)
    rows = pc.index_in(pa.array(ids, pa.string()), counted["id"].combine_chunks())
    return pa.table({"id": ids, "count": pc.fill_null(counted["count"].take(rows), 0)})


def _read_frequencies(shards: Path) -> pa.Table:
    path = shards / FREQUENCIES
    try:
        table = pq.read_table(path, columns=["concept", "count"])
    except (OSError, pa.ArrowException) as error:
        raise SHARDS.damaged(path, error) from error
    return table.rename_columns(["id", "count"])


_SPECIAL = {"first": "cls_token_id", "separator": "sep_token_id", "padding": "pad_token_id"}
_KEY_LENGTH = 12
_PARTS_VERSION = 1
"""The version of the division into parts; a change invalidates packed text."""


def open_packed(
    config: AnnotatedTextConfig,
    tokenizer: Any,
    *,
    entities: Sequence[str] | None = None,
    kb: KnowledgeBase | None = None,
    progress: Progress | None = None,
) -> PackedText:
    """Open the packed text of a configuration; pack it first if necessary.

    ``tokenizer`` is a fast one of transformers. ``entities`` are the ids of an existing entity
    table, in the order of its rows; by default the concepts of the text, the most frequent first.
    ``kb`` has the names for synonym substitution.
    """
    if config.substitution is not None and kb is None:
        raise ConfigError(
            "stream.substitution: takes names from a knowledge base; name it with --kb"
        )
    shards = Shards.open(config.shards)
    wanted = _Wanted(config, tokenizer, entities, kb)
    made_from = _describe(wanted)
    folder = config.cache or _default_folder(config.shards, made_from)
    if not PACKED.is_at(folder):
        _build_once(folder, shards, wanted, made_from, progress)
    packed = PackedText.open(folder)
    _check_same(folder, made_from, packed.manifest["made_from"])
    if not len(packed):
        raise ConfigError(f"stream.shards: {config.shards} holds no text")
    return packed


class _Wanted(NamedTuple):
    """Inputs of packed text, besides the shards."""

    config: AnnotatedTextConfig
    tokenizer: Any
    entities: Sequence[str] | None
    kb: KnowledgeBase | None

    @property
    def labels(self) -> list[str]:
        """The labels of tokens and mentions."""
        replaced = [CONSISTENT] if self.config.substitution is not None else []
        return replaced + ([SEGMENT_ENDS, HEAD_OFFSET] if self.config.segmentation else [])


def _build_once(
    folder: Path,
    shards: Shards,
    wanted: _Wanted,
    made_from: Mapping[str, Any],
    progress: Progress | None,
) -> None:
    """Pack the text, or wait for another run that does."""
    with sole_writer(folder, wait=True):
        if PACKED.is_at(folder):
            return
        try:
            _build(folder, shards, wanted, made_from, progress)
        except (OutputError, StoreError):
            if not PACKED.is_at(folder):
                raise
            shutil.rmtree(_parts_folder(folder), ignore_errors=True)  # another process was first


def _build(
    folder: Path,
    shards: Shards,
    wanted: _Wanted,
    made_from: Mapping[str, Any],
    progress: Progress | None,
) -> None:
    """Pack every shard, by several processes, then join the parts."""
    config, parts_folder = wanted.config, _parts_folder(folder)
    table, parts = _entities(config, wanted.entities), list_parts(shards, config)
    n_workers = min(config.workers or n_cores(), max(1, len(parts)))
    forms = {} if config.substitution is None else count_forms(shards)
    job = PackingJob(
        config, wanted.tokenizer, table["id"].to_pylist(), read_entities(config.shards, 1), forms,
        None if wanted.kb is None else wanted.kb.folder,
        _special_tokens(wanted.tokenizer), wanted.labels, parts_folder, n_workers == 1,
    )  # fmt: skip
    open_plan(parts_folder, made_from)
    progress = progress or Progress(enabled=False)
    progress.start("tokens")
    counts, n_done = [], 0
    for part, some in zip(parts, pack_parts(job, parts, n_workers), strict=True):
        counts.append(some)
        n_done += part.n_documents
        progress.advance(part.n_documents, n_done / max(1, sum(p.n_documents for p in parts)))
    progress.start("join")
    with new_folder(folder) as work:
        join_parts(work, [job.path(part) for part in parts], wanted.labels)
        write_entities(work, table)
        PACKED.write(work, {
            "made_from": made_from,
            "special": job.special,
            "n_entities": len(table),
            "labels": wanted.labels,
            "counts": sum_counts(counts),
            "files": describe_files(work),
        })  # fmt: skip
    shutil.rmtree(parts_folder, ignore_errors=True)
    progress.finish()


def _parts_folder(folder: Path) -> Path:
    """Name the folder of the parts of unfinished packed text."""
    return folder.with_name(f"{folder.name}.parts")


def _entities(config: AnnotatedTextConfig, ids: Sequence[str] | None) -> pa.Table:
    if ids is not None:
        return count_entities(config.shards, ids)
    return read_entities(config.shards, config.min_count)


def _describe(wanted: _Wanted) -> dict[str, Any]:
    """Describe what determines the sequences, for the manifest."""
    config, entities = wanted.config, wanted.entities
    described = {
        "shards": hash_file(config.shards / MANIFEST),
        "tokenizer": hash_tokenizer(wanted.tokenizer),
        "words": WORDS_VERSION,
        "parts": _PARTS_VERSION,
        "entities": None if entities is None else _hash(list(entities)),
        **config.packing_settings(),
    }
    if config.substitution is not None and wanted.kb is not None:
        described |= describe_substitution(wanted.kb)
    if config.segmentation is not None:
        described["segmentation"] = _hash(SEGMENTATION.read(config.segmentation))
        described["segments_version"] = SEGMENTS_VERSION
    return described


def _default_folder(shards: Path, made_from: Mapping[str, Any]) -> Path:
    """Name the folder beside the shards by a hash of what it is built from."""
    name = shards.resolve().name
    return shards.resolve().with_name(f"{name}-packed-{_hash(made_from)[:_KEY_LENGTH]}")


def _check_same(folder: Path, wanted: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    for key, value in wanted.items():
        if found.get(key) != value:
            difference = (
                ""
                if isinstance(value, str) or key == "entities"
                else (f" (expected {value!r}, found {found.get(key)!r})")
            )
            raise StoreError(
                f"{folder}: was packed with different {key}{difference}; remove the folder, or "
                "name another one in stream.cache"
            )


def _special_tokens(tokenizer: Any) -> dict[str, int]:
    special = {name: getattr(tokenizer, key) for name, key in _SPECIAL.items()}
    for name, token in special.items():
        if token is None:
            raise ConfigError(
                f"encoder: its tokenizer has no {_SPECIAL[name].removesuffix('_id')}; choose an "
                "encoder of BERT's kind"
            )
    return special


def _hash(values: Any) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
