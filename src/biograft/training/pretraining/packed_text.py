"""Packed text: annotated shards as token sequences with mentions and labels, memory-mapped.

Every shard is packed by itself, by several processes. A part is a shard, or a copy of it with
substituted entities. It appears under its name when it is complete, so that interrupted packing
continues with the next one. No sequence reaches from one part into another, so that the parts,
joined in their order, do not depend on the processes.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from biograft.artifacts import (
    MANIFEST,
    ArtifactKind,
    check_ends,
    check_length,
    check_range,
    create_array,
    describe_files,
    hash_file,
    new_folder,
    open_array,
    save_arrays,
    sole_writer,
)
from biograft.compute import Finished, Workers, n_cores, run_in_order
from biograft.errors import ConfigError, OutputError, StoreError
from biograft.kb import KnowledgeBase
from biograft.progress import Progress
from biograft.text.segmentation import Segmentation
from biograft.text.segmentation.folder import SEGMENTATION
from biograft.text.shards import SHARDS, Shards, read_shard
from biograft.training.objectives.examples import (
    CONSISTENT,
    HEAD_OFFSET,
    SEGMENT_ENDS,
    Ints,
    TextExample,
)
from biograft.training.pretraining.packing import PackedSequence, Packer
from biograft.training.pretraining.stream_configs import AnnotatedTextConfig
from biograft.training.pretraining.substitution import (
    IndexedDocument,
    SynonymSubstitution,
    count_forms,
    describe_substitution,
)
from biograft.training.pretraining.tokenisation import (
    SEGMENTS_VERSION,
    WORDS_VERSION,
    DocumentTokenizer,
    PackingCounts,
    SegmentFinder,
    hash_tokenizer,
)

PACKED = ArtifactKind(
    format="biograft-packed-text",
    version=1,
    called="folder of packed text",
    remedy="remove the folder; it is built again",
    keys=("made_from", "special", "counts"),
)
ENTITIES, FREQUENCIES = "entities.parquet", "frequencies.parquet"
_ARRAYS: dict[str, tuple[type[np.integer], int]] = {
    "tokens": (np.int32, 0),
    "words": (np.int16, 0),
    "mentions": (np.int32, 3),
    "sequences": (np.int64, 4),
}
"""The type of each array, and the columns of a row (0: a single value)."""
_LABEL: tuple[type[np.integer], int] = (np.int16, 0)
TOKEN_LABELS, MENTION_LABELS = (SEGMENT_ENDS,), (CONSISTENT, HEAD_OFFSET)
"""The labels that packed text may have."""


PLAN = ArtifactKind(
    format="biograft-packing",
    version=1,
    called="packing in progress",
    remedy="remove the folder; it is begun again",
    file="packing.json",
    keys=("made_from",),
)
PART = ArtifactKind(
    format="biograft-packed-part",
    version=1,
    called="part of packed text",
    remedy="remove the folder; it is packed again",
    file="part.json",
    keys=("counts", "files"),
)


def write_sequences(
    folder: Path, sequences: Iterable[PackedSequence], labels: Iterable[str] = ()
) -> None:
    """Write sequences as arrays of a folder.

    Args:
        folder: An existing folder.
        sequences: The sequences of a part.
        labels: The labels of tokens and mentions that the sequences have.
    """
    kinds = {**_ARRAYS, **dict.fromkeys(labels, _LABEL)}
    rows: dict[str, list[npt.NDArray[np.integer]]] = {
        name: [np.zeros((0, width) if width else 0, kind)] for name, (kind, width) in kinds.items()
    }
    n_tokens = n_mentions = 0
    for sequence in sequences:
        n_tokens += len(sequence.tokens)
        n_mentions += len(sequence.mentions)
        values = {
            **sequence.token_labels,
            **sequence.mention_labels,
            "tokens": sequence.tokens,
            "words": sequence.words,
            "mentions": sequence.mentions,
            "sequences": np.array([[n_tokens, n_mentions, sequence.second, sequence.document]]),
        }
        for name, (kind, _) in kinds.items():
            rows[name].append(values[name].astype(kind))
    save_arrays(folder, {name: np.concatenate(each) for name, each in rows.items()})


@dataclass(frozen=True, slots=True)
class PackedText:
    """Packed text, open for reading; sequences are accessed by index."""

    folder: Path
    manifest: dict[str, Any]
    entities: tuple[str, ...]
    """Entity ids, in the order of the rows of the entity table."""
    entity_counts: Ints
    """The frequency of each in the annotated text."""
    _tokens: npt.NDArray[np.int32]
    _words: npt.NDArray[np.int16]
    _mentions: npt.NDArray[np.int32]
    _sequences: Ints
    _labels: Mapping[str, npt.NDArray[np.int16]]

    @classmethod
    def open(cls, folder: str | Path) -> PackedText:
        """Open a complete folder; raise if a file is missing or truncated."""
        folder = Path(folder)
        manifest = PACKED.read(folder)
        PACKED.check_files(folder, manifest)
        try:
            kinds = {**_ARRAYS, **dict.fromkeys(manifest.get("labels", ()), _LABEL)}
            arrays = {name: _load(folder, name, *kind) for name, kind in kinds.items()}
            _check_arrays(arrays)
            entities = pq.read_table(folder / ENTITIES)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise PACKED.damaged(folder, error) from error
        ids = tuple(entities["id"].to_pylist())
        counts = entities["count"].to_numpy().astype(np.int64)
        tokens, words, mentions, sequences = (arrays.pop(name) for name in _ARRAYS)
        return cls(folder, manifest, ids, counts, tokens, words, mentions, sequences, arrays)

    def __len__(self) -> int:
        """The number of sequences."""
        return len(self._sequences)

    @property
    def n_tokens(self) -> int:
        """The number of tokens of all sequences, special ones included."""
        return len(self._tokens)

    @property
    def counts(self) -> dict[str, int]:
        """The counts of packing; see ``PackingCounts``."""
        return dict(self.manifest["counts"])

    @property
    def padding(self) -> int:
        """The padding token."""
        return int(self.manifest["special"]["padding"])

    @property
    def max_length(self) -> int:
        """The maximum number of tokens of a sequence."""
        return int(self.manifest["made_from"]["max_length"])

    @property
    def documents(self) -> Ints:
        """The number of the (first) document of each sequence; copies have that of the original."""
        return np.asarray(self._sequences[:, 3])

    @property
    def lengths(self) -> Ints:
        """The number of tokens of each sequence."""
        return np.diff(self._sequences[:, 0], prepend=0)

    def example(self, index: int) -> TextExample:
        """Return a sequence with its labels, as it was packed."""
        end, mentions_end, second, _ = self._sequences[index].tolist()
        start, mentions_start = self._sequences[index - 1, :2].tolist() if index else (0, 0)
        tokens = self._tokens[start:end].astype(np.int64)
        segments = np.zeros_like(tokens)
        if second:
            segments[second:] = 1
        mentions = self._mentions[mentions_start:mentions_end].astype(np.int64)
        return TextExample(
            tokens=tokens,
            segments=segments,
            words=self._words[start:end].astype(np.int64),
            mentions=mentions,
            token_labels={
                name: self._labels[name][start:end].astype(np.int64)
                for name in TOKEN_LABELS
                if name in self._labels
            },
            mention_labels={
                name: self._labels[name][mentions_start:mentions_end].astype(np.int64)
                for name in MENTION_LABELS
                if name in self._labels
            },
        )


def _load(folder: Path, name: str, kind: type[np.integer], width: int) -> npt.NDArray[Any]:
    loaded = open_array(folder / f"{name}.npy", kind, n_axes=2 if width else 1)
    check_length(name, loaded, len(loaded), *((width,) if width else ()))
    return loaded


def _check_arrays(arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Refuse arrays that do not fit together: sequences divide the tokens and the mentions."""
    totals = len(arrays["tokens"]), len(arrays["mentions"])
    for name, array in arrays.items():
        if name not in ("tokens", "mentions", "sequences"):
            check_length(name, array, totals[name in MENTION_LABELS])
    sequences = arrays["sequences"]
    for column, total in enumerate(totals):
        ends = np.append(0, sequences[:, column])
        check_ends("sequences", ends, total)
    if not bool((np.diff(sequences[:, 0], prepend=0) > 0).all()):
        raise ValueError("sequences: one has no tokens")
    check_range("sequences", sequences, 0, np.iinfo(np.int64).max)


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

    Args:
        config: The shards, and how their text is packed.
        tokenizer: A fast tokenizer of transformers.
        entities: The ids of an existing entity table, in the order of its rows; by default the
            concepts of the text, the most frequent first.
        kb: The names for synonym substitution.
        progress: Shows the progress of packing.

    Returns:
        The packed text, with at least one sequence.

    Raises:
        ConfigError: There is no text, or the tokenizer or the knowledge base does not fit.
        StoreError: The folder is damaged, or was packed with other settings.
    """
    if config.substitution is not None and kb is None:
        raise ConfigError(
            "stream.substitution: takes names from a knowledge base; name it with --kb"
        )
    shards = Shards.open(config.shards)
    made_from = _describe(config, tokenizer, entities, kb)
    folder = config.cache or _default_folder(config.shards, made_from)
    if not PACKED.is_at(folder):
        parts_folder = folder.with_name(f"{folder.name}.parts")
        with sole_writer(folder, wait=True):
            try:
                if not PACKED.is_at(folder):
                    job = PackingJob.plan(config, tokenizer, shards, entities, kb, parts_folder)
                    _build(folder, job, made_from, progress or Progress(enabled=False))
            except (OutputError, StoreError):
                if not PACKED.is_at(folder):
                    raise
                shutil.rmtree(parts_folder, ignore_errors=True)  # another process was first
    packed = PackedText.open(folder)
    _check_same(folder, made_from, packed.manifest["made_from"])
    if not len(packed):
        raise ConfigError(f"stream.shards: {config.shards} holds no text")
    return packed


def _describe(
    config: AnnotatedTextConfig,
    tokenizer: Any,
    entities: Sequence[str] | None,
    kb: KnowledgeBase | None,
) -> dict[str, Any]:
    """Describe what determines the sequences, for the manifest."""
    described = {
        "shards": hash_file(config.shards / MANIFEST),
        "tokenizer": hash_tokenizer(tokenizer),
        "words": WORDS_VERSION,
        "parts": _PARTS_VERSION,
        "entities": None if entities is None else _hash(list(entities)),
        **config.packing_settings(),
    }
    if config.substitution is not None and kb is not None:
        described |= describe_substitution(kb)
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


class TextPart(NamedTuple):
    """A shard, or a copy of it (``copy`` from 0; None: the original)."""

    number: int
    shard: Path
    first: int
    """The number of its first document."""
    n_documents: int
    copy: int | None


def list_parts(shards: Shards, config: AnnotatedTextConfig) -> list[TextPart]:
    """List the parts in their order: the originals of all shards, then copies of all of them."""
    passes: list[int | None] = [None]
    if config.substitution is not None:
        passes = [None] * config.substitution.originals + [*range(config.substitution.copies)]
    sizes = [_n_documents(path) for path in shards.paths]
    firsts = [sum(sizes[:n]) for n in range(len(sizes))]
    rows = [
        (path, first, size, copy)
        for copy in passes
        for path, first, size in zip(shards.paths, firsts, sizes, strict=True)
    ]
    return [TextPart(number, *row) for number, row in enumerate(rows)]


def _n_documents(shard: Path) -> int:
    try:
        return int(pq.read_metadata(shard).num_rows)
    except (OSError, pa.ArrowException) as error:
        raise SHARDS.damaged(shard, error) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class PackingJob:
    """What all parts have in common: settings, tokenizer, entities, output folder."""

    config: AnnotatedTextConfig
    tokenizer: Any
    special: Mapping[str, int]
    parts: Sequence[TextPart]
    table: pa.Table
    """The entity table: ``id`` and ``count`` of each row."""
    frequencies: pa.Table
    """All entities of the text with their ``count``, for substitution."""
    forms: Mapping[tuple[str, str], Counter[str]]
    """The names of the mentions, for substitution."""
    kb: Path | None
    folder: Path
    n_workers: int

    @classmethod
    def plan(
        cls,
        config: AnnotatedTextConfig,
        tokenizer: Any,
        shards: Shards,
        entities: Sequence[str] | None,
        kb: KnowledgeBase | None,
        folder: Path,
    ) -> PackingJob:
        """Plan the packing of some shards; the arguments are those of ``open_packed``."""
        parts = list_parts(shards, config)
        return cls(
            config=config,
            tokenizer=tokenizer,
            special=_special_tokens(tokenizer),
            parts=parts,
            table=read_entities(config.shards, config.min_count)
            if entities is None
            else count_entities(config.shards, entities),
            frequencies=read_entities(config.shards, 1),
            forms={} if config.substitution is None else count_forms(shards),
            kb=None if kb is None else kb.folder,
            folder=folder,
            n_workers=min(config.workers or n_cores(), max(1, len(parts))),
        )

    @property
    def labels(self) -> list[str]:
        """The labels of tokens and mentions."""
        replaced = [CONSISTENT] if self.config.substitution is not None else []
        return replaced + ([SEGMENT_ENDS, HEAD_OFFSET] if self.config.segmentation else [])

    def open(self) -> _PartPacker:
        """Open what a process needs."""
        if self.n_workers > 1:
            os.environ["TOKENIZERS_PARALLELISM"] = "false"  # of this worker process
        return _PartPacker(self)

    def path(self, part: TextPart) -> Path:
        """Return the folder of a part."""
        return self.folder / f"part-{part.number:05}"

    def pack(self) -> Iterator[dict[str, int]]:
        """Pack the parts that are missing; yield the counts of all, in order."""
        workers = Workers(
            n=self.n_workers,
            place=str(self.folder),
            remedy="set a smaller stream.workers and start again; finished parts are kept",
        )
        return run_in_order(_PartPacker.pack, map(self._unless_finished, self.parts), self, workers)

    def _unless_finished(self, part: TextPart) -> TextPart | Finished[dict[str, int]]:
        """Return the counts of a part if it is complete, else the part."""
        folder = self.path(part)
        if not PART.is_at(folder):
            return part
        try:
            manifest = PART.read(folder)
            PART.check_files(folder, manifest)
        except StoreError:
            return part  # damaged from outside: it is packed again
        return Finished(dict(manifest["counts"]))


class _PartPacker:
    """Packs parts; holds what is the same for all of them."""

    def __init__(self, job: PackingJob) -> None:
        self._job, config = job, job.config
        folder = config.segmentation
        segments = SegmentFinder(Segmentation.open(folder)) if folder else None
        rows = {entity: row for row, entity in enumerate(job.table["id"].to_pylist())}
        self._tokenizer = DocumentTokenizer(job.tokenizer, rows, config.min_score, segments)
        self._substitution = None
        if config.substitution is not None and job.kb is not None:
            kb = KnowledgeBase.open(job.kb)
            self._substitution = SynonymSubstitution(
                kb, config.substitution, job.frequencies, job.forms
            )

    def pack(self, part: TextPart) -> dict[str, int]:
        """Write the sequences of a part, and return its counts."""
        job = self._job
        packer = Packer(job.config, job.special["first"], job.special["separator"])
        documents = self._tokenizer.tokenise(self._read(part), packer.counts)
        with new_folder(job.path(part), overwrite=True) as work:
            write_sequences(work, packer.pack(documents), job.labels)
            counts = packer.counts.to_json()
            PART.write(work, {"counts": counts, "files": describe_files(work)})
        return counts

    def _read(self, part: TextPart) -> Iterator[IndexedDocument]:
        documents = read_shard(part.shard)
        if self._substitution is not None:
            yield from self._substitution.read(documents, part.copy, part.first)
            return
        for number, document in enumerate(documents, part.first):
            yield IndexedDocument(number, document)


def _build(folder: Path, job: PackingJob, made_from: Mapping[str, Any], progress: Progress) -> None:
    """Pack every shard, then join the parts."""
    open_plan(job.folder, made_from)
    progress.start("tokens")
    counts, n_done = Counter(PackingCounts().to_json()), 0
    n_documents = max(1, sum(part.n_documents for part in job.parts))
    for part, some in zip(job.parts, job.pack(), strict=True):
        counts.update(some)
        n_done += part.n_documents
        progress.advance(part.n_documents, n_done / n_documents)
    progress.start("join")
    about = {
        "made_from": made_from,
        "special": job.special,
        "n_entities": len(job.table),
        "labels": job.labels,
        "counts": counts,
    }
    with PACKED.new(folder, about) as work:
        for name in (*_ARRAYS, *job.labels):
            _join(work / f"{name}.npy", [job.path(part) for part in job.parts])
        pq.write_table(job.table, work / ENTITIES, compression="zstd")
    shutil.rmtree(job.folder, ignore_errors=True)
    progress.finish()


def open_plan(folder: Path, made_from: Mapping[str, Any]) -> None:
    """Create the folder of parts; keep those of an interrupted run that packed the same."""
    if PLAN.is_at(folder):
        if PLAN.read(folder)["made_from"] == json.loads(json.dumps(made_from)):
            return
        shutil.rmtree(folder)
    elif not PLAN.is_free(folder):
        raise OutputError(f"{folder}: holds no parts of packed text; remove it or move it away")
    PLAN.write(folder, {"made_from": made_from})


def _join(path: Path, parts: Sequence[Path]) -> None:
    """Write an array of all parts, one after the other; the ends of sequences are shifted."""
    arrays = [np.load(part / path.name, mmap_mode="r", allow_pickle=False) for part in parts]
    shape = (sum(map(len, arrays)), *arrays[0].shape[1:])
    joined = create_array(path, arrays[0].dtype, shape)
    start, shift = 0, np.zeros(4, np.int64)
    for array in arrays:
        own = joined[start : start + len(array)]
        own[:] = array
        if path.name == "sequences.npy" and len(array):
            own += shift
            shift[:2] = own[-1, :2]
        start += len(array)
