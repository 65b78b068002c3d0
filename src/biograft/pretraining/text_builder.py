"""Open packed text, or build it from annotated shards; the entities of its table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from biograft.artifacts import MANIFEST, file_sizes, hash_file, new_folder, sole_writer
from biograft.corpus.segmentation import Segmentation
from biograft.corpus.segmentation.folder import SEGMENTATION
from biograft.corpus.shards import SHARDS, AnnotatedDocument, Shards
from biograft.errors import ConfigError, OutputError, StoreError
from biograft.kb import KnowledgeBase
from biograft.objectives.examples import CONSISTENT, HEAD_OFFSET, SEGMENT_ENDS
from biograft.pretraining.packed_text import PACKED, PackedText, write_entities, write_sequences
from biograft.pretraining.packing import Packer
from biograft.pretraining.stream_configs import AnnotatedTextConfig
from biograft.pretraining.substitution import (
    NumberedDocument,
    SynonymSubstitution,
    describe_substitution,
)
from biograft.pretraining.tokenisation import (
    SEGMENTS_VERSION,
    WORDS_VERSION,
    DocumentTokenizer,
    SegmentFinder,
    hash_tokenizer,
)
from biograft.progress import Progress

FREQUENCIES = "frequencies.parquet"


def read_entities(shards: Path, min_count: int) -> pa.Table:
    """Return the concepts with a minimum frequency: ``id`` and ``count``, most frequent first."""
    counted = _read_frequencies(shards)
    kept = counted.filter(pc.greater_equal(counted["count"], min_count))
    return kept.sort_by([("count", "descending"), ("id", "ascending")])


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
    """What packed text is built from, besides the shards."""

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
        except OutputError:
            if not PACKED.is_at(folder):  # another process was first
                raise


def _build(
    folder: Path,
    shards: Shards,
    wanted: _Wanted,
    made_from: Mapping[str, Any],
    progress: Progress | None,
) -> None:
    config, tokenizer = wanted.config, wanted.tokenizer
    special = _special_tokens(tokenizer)
    table = _entities(config, wanted.entities)
    rows = {entity: row for row, entity in enumerate(table["id"].to_pylist())}
    progress = progress or Progress(enabled=False)
    progress.start("tokens")
    packer = Packer(config, special["first"], special["separator"])
    segments = (
        SegmentFinder(Segmentation.open(config.segmentation)) if config.segmentation else None
    )
    documents = DocumentTokenizer(tokenizer, rows, config.min_score, segments).tokenise(
        _read(shards, wanted, progress), packer.counts
    )
    with new_folder(folder) as work:
        write_sequences(work, packer.pack(documents), wanted.labels)
        write_entities(work, table)
        PACKED.write(work, {
            "made_from": made_from,
            "special": special,
            "n_entities": len(rows),
            "labels": wanted.labels,
            "counts": packer.counts.to_json(),
            "files": file_sizes(work),
        })  # fmt: skip
    progress.finish()


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


def _read(shards: Shards, wanted: _Wanted, progress: Progress) -> Iterator[NumberedDocument]:
    """Read the documents, and their copies with substituted entities."""
    substitution = wanted.config.substitution
    if substitution is None or wanted.kb is None:
        counted = _Counted(shards, progress, 1)
        yield from (NumberedDocument(number, each) for number, each in enumerate(counted))
        return
    counted = _Counted(shards, progress, substitution.copies + 1)
    entities = read_entities(wanted.config.shards, 1)
    yield from SynonymSubstitution(wanted.kb, substitution, entities).read(counted)


@dataclass(slots=True)
class _Counted:
    """Documents that are read several times, with progress over all of them."""

    shards: Shards
    progress: Progress
    times: int
    n_read: int = 0

    def __iter__(self) -> Iterator[AnnotatedDocument]:
        for document in self.shards:
            yield document
            self.n_read += 1
            self.progress.advance(1, self.n_read / (self.times * len(self.shards)))


def _hash(values: Any) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
