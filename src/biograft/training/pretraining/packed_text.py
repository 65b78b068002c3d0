"""Packed text: annotated shards as token sequences with mentions and labels, memory-mapped.

Documents are tokenised: annotated spans become token spans, with words, sentences and the segments
of entities. They are packed into sequences of limited length, split between sentences, else between
words, if possible never within a mention. A split position is the index of the token after the
split.

Every shard is packed by itself, by several processes. A part is a shard, or a copy of it with
substituted entities. It appears under its name when it is complete, so that interrupted packing
continues with the next one. No sequence reaches from one part into another, so that the parts,
joined in their order, do not depend on the processes.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from biograft.arrays import Array, Flags, Floats, Int16s, Int32s, Ints
from biograft.artifacts import (
    MANIFEST,
    ArraySpec,
    ArtifactKind,
    check_ends,
    create_array,
    describe_files,
    hash_file,
    new_folder,
    open_arrays,
    save_arrays,
    sole_writer,
)
from biograft.compute import Finished, Workers, n_cores, run_in_order
from biograft.errors import ConfigError, OutputError, StoreError
from biograft.kb import KnowledgeBase
from biograft.progress import Progress
from biograft.text.alignment import NONE, align_spans, split_tokens, word_indices
from biograft.text.segmentation import Segmentation
from biograft.text.segmentation.folder import SEGMENTATION
from biograft.text.segmentation.segmenter import SegmentedEntity
from biograft.text.sentences import split_sentences
from biograft.text.shards import SHARDS, LinkedSpan, Shards, read_shard
from biograft.training.objectives.examples import (
    CONSISTENT,
    HEAD_OFFSET,
    IGNORED,
    SEGMENT_ENDS,
    SPECIAL,
    TextExample,
    splice,
)
from biograft.training.pretraining.recipe import AnnotatedTextConfig
from biograft.training.pretraining.substitution import (
    IndexedDocument,
    SynonymSubstitution,
    count_forms,
    describe_substitution,
)


@dataclass(slots=True)
class PackingCounts:
    """Counts of packing: each span becomes a mention, or is counted by the reason why not."""

    n_documents: int = 0
    n_tokens: int = 0
    """Tokens of the documents, without special ones."""
    n_sequences: int = 0
    n_left_out_tokens: int = 0
    """Tokens of parts too short to be split in two segments."""
    n_spans: int = 0
    n_mentions: int = 0
    """Spans that are mentions of sequences."""
    n_outside_table: int = 0
    """Mentions whose concept is not in the entity table; they are detected, not linked."""
    n_low_score: int = 0
    """Spans with a score below ``min_score``."""
    n_without_token: int = 0
    """Spans of characters that the tokenizer drops."""
    n_overlapping: int = 0
    """Spans that share a token with a better-scored one."""
    n_cut: int = 0
    """Spans that are cut, or in a part that is left out."""
    n_beyond: int = 0
    """Spans beyond ``max_mentions``, those with the lowest scores."""
    n_without_segments: int = 0
    """Long entities whose segments share a token: they count as short ones."""
    n_without_head: int = 0
    """Long entities that their head does not end: only their segments are known."""

    def to_json(self) -> dict[str, int]:
        """Return the counts as plain values."""
        return asdict(self)


SEGMENTS_VERSION = 3
"""The version of the labels of segments; a change invalidates packed text."""


class Segmenter(Protocol):
    """Splits entities into segments, such as a ``Segmentation``."""

    def segment(self, text: str) -> SegmentedEntity:
        """Split an entity into segments."""


class SegmentLabels(NamedTuple):
    """The labels of long mentions and their tokens."""

    head_offsets: Ints
    """(mentions,): the label ``HEAD_OFFSET``."""
    ends: Ints
    """(tokens,): the label ``SEGMENT_ENDS``."""


class SegmentFinder:
    """Labels the segments of mentions; equal ones are segmented once."""

    def __init__(self, segmenter: Segmenter) -> None:
        self._segmenter = segmenter
        self._segmented: dict[str, SegmentedEntity] = {}

    def label(
        self,
        text: str,
        offsets: Ints,
        mentions: Ints,
        spans: Sequence[tuple[int, int]],
        counts: PackingCounts,
    ) -> SegmentLabels:
        """Label the segments of mentions (rows: first token, last token) with these spans.

        An entity whose segments share a token, as in the middle of a word, counts as short.
        Punctuation after the last segment, such as a closing bracket, belongs to it. Where anything
        follows the head, a bracket or "of the wall", the mention has no head label.

        Args:
            text: Text of the document.
            offsets: Start and end of each token.
            mentions: First and last token of each mention.
            spans: Start and end of each mention in the text.
            counts: Counts what was found.
        """
        head_offsets = np.full(len(mentions), IGNORED, np.int64)
        ends = np.full(len(offsets), IGNORED, np.int64)
        for row, (start, end) in enumerate(spans):
            entity = self._segment(text[start:end])
            if not entity.is_long:
                continue
            first, last = mentions[row, :2].tolist()
            parts = [*entity.segments, entity.adjective, entity.head]
            rows = align_spans(offsets, [(start + s, start + e) for s, e in parts])
            segments, adjective, head = rows[:-2], rows[-2].tolist(), rows[-1].tolist()
            if not _are_disjoint(segments, first, last):
                counts.n_without_segments += 1
                continue
            ends[first : last + 1] = 0
            ends[[*segments[:-1, 1], last]] = 1
            if first <= adjective[0] <= adjective[1] < head[0] and head[1] == last:
                head_offsets[row] = head[0] - first
            else:
                counts.n_without_head += 1
        return SegmentLabels(head_offsets, ends)

    def _segment(self, entity: str) -> SegmentedEntity:
        if entity not in self._segmented:
            self._segmented[entity] = self._segmenter.segment(entity)
        return self._segmented[entity]


def _are_disjoint(segments: Ints, first: int, last: int) -> bool:
    """Whether segments are disjoint and ascending token spans within a mention."""
    starts, ends = segments.T
    inside = first <= starts[0] and ends[-1] <= last
    return bool(inside and (starts <= ends).all() and (ends[:-1] < starts[1:]).all())


WORDS_VERSION = 2
"""The version of word splitting; a change invalidates packed text."""
_DOCUMENTS_PER_BATCH = 128
_OUTSIDE = -1
"""The row of a concept outside the entity table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenisedDocument(TextExample):
    """The tokens of a text, without special ones; mentions are disjoint and ascending."""

    segments: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """A document has none."""
    index: int
    """Number of the document."""
    scores: Floats
    """The score of each mention."""
    sentences: Ints
    """The first tokens of sentences, except the first one."""


class DocumentTokenizer:
    """Tokenises with a copy of a fast tokenizer that reads ``[SEP]`` in a text as plain text.

    Args:
        tokenizer: Fast tokenizer of transformers.
        rows: Row of the table of each entity.
        min_score: Score below which a mention is left out.
        segments: Finds the segments of mentions; None: they are not labelled.
    """

    def __init__(
        self,
        tokenizer: Any,
        rows: Mapping[str, int],
        min_score: float,
        segments: SegmentFinder | None = None,
    ) -> None:
        self._backend = copy.deepcopy(fast_backend(tokenizer))
        self._backend.no_truncation()
        self._backend.no_padding()
        self._backend.encode_special_tokens = True
        self._rows, self._min_score, self._segments = rows, min_score, segments

    def tokenise(
        self, documents: Iterable[IndexedDocument], counts: PackingCounts
    ) -> Iterator[TokenisedDocument]:
        """Tokenise documents.

        Args:
            documents: Annotated documents.
            counts: Counts what was read and left out.
        """
        remaining = iter(documents)
        while some := list(islice(remaining, _DOCUMENTS_PER_BATCH)):
            texts = [each.document.text for each in some]
            encodings = self._backend.encode_batch(texts, add_special_tokens=False)
            for each, encoding in zip(some, encodings, strict=True):
                yield self._document(each, encoding, counts)

    def _document(
        self, source: IndexedDocument, encoding: Any, counts: PackingCounts
    ) -> TokenisedDocument:
        text, spans = source.document.text, source.document.spans
        offsets = np.array(encoding.offsets, np.int64).reshape(-1, 2)
        chosen, mentions = self._mentions(spans, offsets, counts)
        counts.n_documents += 1
        counts.n_tokens += len(encoding.ids)
        token_labels, mention_labels = {}, {}
        if source.consistent is not None:
            mention_labels[CONSISTENT] = np.array(source.consistent, np.int64)[chosen]
        if self._segments is not None:
            chosen_spans = [(spans[row].start, spans[row].end) for row in chosen]
            labels = self._segments.label(text, offsets, mentions, chosen_spans, counts)
            token_labels[SEGMENT_ENDS] = labels.ends
            mention_labels[HEAD_OFFSET] = labels.head_offsets
        return TokenisedDocument(
            index=source.index,
            tokens=np.array(encoding.ids, np.int64),
            words=_number_words(word_indices(offsets, split_tokens(text))),
            mentions=mentions,
            scores=np.array([spans[row].score for row in chosen], np.float64),
            sentences=_sentence_starts(text, offsets, mentions),
            token_labels=token_labels,
            mention_labels=mention_labels,
        )

    def _mentions(
        self, spans: Sequence[LinkedSpan], offsets: Ints, counts: PackingCounts
    ) -> tuple[list[int], Ints]:
        """Convert spans to token spans; of those that share a token the best-scored is kept.

        Returns the rows of the spans that become mentions, ascending, and the mentions.
        """
        counts.n_spans += len(spans)
        rows = [row for row, span in enumerate(spans) if span.score >= self._min_score]
        counts.n_low_score += len(spans) - len(rows)
        tokens = align_spans(offsets, [(span.start, span.end) for span in spans])
        taken, chosen = np.zeros(len(offsets), bool), []
        for row in sorted(rows, key=lambda row: -spans[row].score):
            first, last = tokens[row]
            if first < 0:
                counts.n_without_token += 1
            elif taken[first : last + 1].any():
                counts.n_overlapping += 1
            else:
                taken[first : last + 1] = True
                chosen.append(row)
        chosen.sort(key=lambda row: int(tokens[row, 0]))
        entities = [self._rows.get(spans[row].concept, _OUTSIDE) for row in chosen]
        return chosen, np.column_stack([tokens[chosen], np.array(entities, np.int64)])


def fast_backend(tokenizer: Any) -> Any:
    """Return the backend of a fast tokenizer; refuse a slow one, which has no offsets."""
    if not getattr(tokenizer, "is_fast", False):
        raise ConfigError(
            f"encoder: expected a fast tokenizer, which has character offsets, found "
            f"{type(tokenizer).__name__}; choose an encoder with a tokenizer.json"
        )
    return tokenizer.backend_tokenizer


def hash_tokenizer(tokenizer: Any) -> str:
    """Compute the SHA-256 of all that determines the tokens of a text."""
    described = json.loads(fast_backend(tokenizer).to_str())
    described["truncation"] = described["padding"] = None  # left by the last call, and unused
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()


def _number_words(words: Ints) -> Ints:
    """Renumber the words from 0; a token without a word is one of its own."""
    begins = (words[1:] != words[:-1]) | (words[1:] == NONE)
    return np.cumsum(np.append(np.zeros(min(1, len(words)), bool), begins))


def _sentence_starts(text: str, offsets: Ints, mentions: Ints) -> Ints:
    """Find the first tokens of sentences, except the first one and those within mentions."""
    first = align_spans(offsets, split_sentences(text))[:, 0]
    starts = np.unique(first[first > 0])
    inside = np.zeros(len(offsets), bool)
    for begin, end in mentions[:, :2]:
        inside[begin + 1 : end + 1] = True
    return starts[~inside[starts]]


def last_sentence_end(document: TokenisedDocument, start: int, limit: int) -> int | None:
    """Find the last position between two sentences after ``start``, at most ``limit``.

    Args:
        document: Document in tokens.
        start: Position before it.
        limit: Largest position.
    """
    row = int(np.searchsorted(document.sentences, limit, side="right")) - 1
    position = int(document.sentences[row]) if row >= 0 else start
    return position if position > start else None


def choose_end(document: TokenisedDocument, start: int, room: int) -> int:
    """Find the end of a part of at most ``room`` tokens.

    It is between sentences if this leaves at most half of the room empty, else between words, else
    (in a mention or word longer than the room) anywhere.

    Args:
        document: Document in tokens.
        start: Start of the part.
        room: Largest number of tokens.
    """
    limit = start + room
    if limit >= len(document.tokens):
        return len(document.tokens)
    position = last_sentence_end(document, start, limit)
    if position is not None and position - start >= room / 2:
        return position
    positions = split_positions(document, start, limit + 1)
    return int(positions[-1]) if len(positions) else limit


def choose_middle(document: TokenisedDocument, start: int, end: int) -> int | None:
    """Find the position nearest the middle of a part, between sentences if possible.

    Args:
        document: Document in tokens.
        start: Start of the part.
        end: End of the part.
    """
    inner = document.sentences[(document.sentences > start) & (document.sentences < end)]
    positions = inner if len(inner) else split_positions(document, start, end)
    if not len(positions):
        return None
    return int(positions[np.argmin(np.abs(2 * positions - start - end))])


def split_positions(document: TokenisedDocument, start: int, stop: int) -> Ints:
    """Find the positions between ``start`` and ``stop`` that are in no word and no mention.

    Args:
        document: Document in tokens.
        start: Position before them.
        stop: Position after them.
    """
    positions: Ints = np.arange(start + 1, stop)
    free: Flags = document.words[positions] != document.words[positions - 1]
    for first, last in document.mentions[_mentions_between(document, start, stop), :2]:
        free[max(first - start, 0) : max(last - start, 0)] = False
    allowed: Ints = positions[free]
    return allowed


def _mentions_between(document: TokenisedDocument, start: int, stop: int) -> slice:
    """Return the slice of mentions with a token from ``start`` on and before ``stop``."""
    return slice(
        int(np.searchsorted(document.mentions[:, 1], start)),
        int(np.searchsorted(document.mentions[:, 0], stop)),
    )


@dataclass(frozen=True, slots=True)
class DocumentPart:
    """A token span of one document, end exclusive."""

    document: TokenisedDocument
    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start


DOCUMENT = "document"
"""The label of a sequence that is the number of its first document."""


class Packer:
    """Builds ``[CLS] part [SEP] part [SEP]``, of parts of several documents or two of one.

    Args:
        config: Length and form of the sequences.
        first: Id of the token [CLS].
        separator: Id of the token [SEP].
    """

    def __init__(self, config: AnnotatedTextConfig, first: int, separator: int) -> None:
        self.config, self.counts = config, PackingCounts()
        self._first, self._separator = first, separator

    def pack(self, documents: Iterable[TokenisedDocument]) -> Iterator[TextExample]:
        """Yield the sequences of documents, in their order."""
        if self.config.two_segments:
            sequences = self._halve(self._split(documents, self.config.max_length - 3))
        elif self.config.pack:
            sequences = self._fill(documents, self.config.max_length - 1)
        else:
            sequences = ([part] for part in self._split(documents, self.config.max_length - 2))
        for parts in sequences:
            yield self._sequence(parts)

    def _split(self, documents: Iterable[TokenisedDocument], room: int) -> Iterator[DocumentPart]:
        """Split documents into parts, each for a sequence of its own."""
        for document in documents:
            start = 0
            while start < len(document.tokens):
                end = choose_end(document, start, room)
                yield DocumentPart(document, start, end)
                start = end

    def _fill(
        self, documents: Iterable[TokenisedDocument], room: int
    ) -> Iterator[list[DocumentPart]]:
        """Fill sequences with consecutive documents; each part needs a separator token.

        A sequence that is not empty takes only whole sentences of a document that does not fit.
        """
        parts: list[DocumentPart] = []
        n_free = room
        for document in documents:
            start = 0
            while start < len(document.tokens):
                end = _filling_end(document, start, n_free - 1, empty=not parts)
                if end is not None:
                    parts.append(DocumentPart(document, start, end))
                    n_free -= end - start + 1
                    start = end
                if end is None or end < len(document.tokens):
                    yield parts
                    parts, n_free = [], room
        if parts:
            yield parts

    def _halve(self, parts: Iterable[DocumentPart]) -> Iterator[list[DocumentPart]]:
        """Split parts in two; one that cannot be split is left out and counted."""
        for part in parts:
            middle = choose_middle(part.document, part.start, part.end)
            if middle is None:
                self.counts.n_left_out_tokens += len(part)
                self.counts.n_cut += int(_starting_in(part).sum())
                continue
            yield [
                DocumentPart(part.document, part.start, middle),
                DocumentPart(part.document, middle, part.end),
            ]

    def _sequence(self, parts: list[DocumentPart]) -> TextExample:
        document, none = parts[0].document, np.full(2, IGNORED)
        special = TextExample(
            tokens=np.array([self._first, self._separator]),
            segments=none,
            words=np.full(2, SPECIAL),
            mentions=np.zeros((0, 3), np.int64),
            token_labels=dict.fromkeys(document.token_labels, none),
            mention_labels=dict.fromkeys(document.mention_labels, none[:0]),
            labels={DOCUMENT: document.index},
        )
        spans: list[tuple[TextExample, int, int]] = [(special, 0, 1)]
        for part in parts:
            spans += [(part.document, part.start, part.end), (special, 1, 2)]
        second = len(parts[0]) + 2 if self.config.two_segments else self.config.max_length
        made = splice(spans, second)
        scores = [part.document.scores[self._whole_mentions(part)] for part in parts]
        best = self._best(made.mentions, np.concatenate(scores))
        labels = {name: values[best] for name, values in made.mention_labels.items()}
        return replace(made, mentions=made.mentions[best], mention_labels=labels)

    def _whole_mentions(self, part: DocumentPart) -> Flags:
        """Select the mentions that are within a part, and count those that it cuts."""
        starting = _starting_in(part)
        whole = starting & (part.document.mentions[:, 1] < part.end)
        self.counts.n_cut += int(starting.sum() - whole.sum())
        return whole

    def _best(self, mentions: Ints, scores: Floats) -> Ints:
        """Select the mentions with the best scores, of equal ones the first."""
        max_mentions = self.config.max_mentions or len(mentions)
        best = np.sort(np.argsort(-scores, kind="stable")[:max_mentions])
        self.counts.n_sequences += 1
        self.counts.n_beyond += len(mentions) - len(best)
        self.counts.n_mentions += len(best)
        self.counts.n_outside_table += int((mentions[best, 2] < 0).sum())
        return best


def _starting_in(part: DocumentPart) -> Flags:
    """Select the mentions that begin in a part."""
    first = part.document.mentions[:, 0]
    return (first >= part.start) & (first < part.end)


def _filling_end(document: TokenisedDocument, start: int, room: int, *, empty: bool) -> int | None:
    """Find the end of a document in the rest of a sequence; None if nothing fits."""
    if len(document.tokens) - start <= room:
        return len(document.tokens)
    return (
        choose_end(document, start, room)
        if empty
        else (last_sentence_end(document, start, start + room))
    )


PACKED = ArtifactKind(
    format="biograft-packed-text",
    version=1,
    called="folder of packed text",
    remedy="remove the folder; it is built again",
    keys=("made_from", "special", "counts"),
)
ENTITIES, FREQUENCIES = "entities.parquet", "frequencies.parquet"
_ARRAYS = {
    "tokens": ArraySpec("int32", ("tokens",)),
    "words": ArraySpec("int16", ("tokens",)),
    "mentions": ArraySpec("int32", ("mentions", 3)),
    "sequences": ArraySpec("int64", ("sequences", 4), low=0),
}
TOKEN_LABELS, MENTION_LABELS = (SEGMENT_ENDS,), (CONSISTENT, HEAD_OFFSET)
"""The labels that packed text may have."""
_LABELS = {name: ArraySpec("int16", ("tokens",)) for name in TOKEN_LABELS} | {
    name: ArraySpec("int16", ("mentions",)) for name in MENTION_LABELS
}


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
    folder: Path, sequences: Iterable[TextExample], labels: Iterable[str] = ()
) -> None:
    """Write sequences as arrays of a folder.

    Args:
        folder: An existing folder.
        sequences: The sequences of a part.
        labels: The labels of tokens and mentions that the sequences have.
    """
    specs = _ARRAYS | {name: _LABELS[name] for name in labels}
    rows = {
        name: [np.zeros((0, *map(int, each.shape[1:])), each.kinds)] for name, each in specs.items()
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
            "sequences": np.array(
                [[n_tokens, n_mentions, sequence.segments.argmax(), sequence.labels[DOCUMENT]]]
            ),
        }
        for name, spec in specs.items():
            rows[name].append(values[name].astype(spec.kinds))
    save_arrays(folder, {name: np.concatenate(each) for name, each in rows.items()})


@dataclass(frozen=True, slots=True)
class PackedText:
    """Packed text, open for reading; sequences are accessed by index."""

    folder: Path
    """Folder of the packed text."""
    manifest: dict[str, Any]
    """Settings and counts of the packing."""
    entities: tuple[str, ...]
    """Entity ids, in the order of the rows of the entity table."""
    entity_counts: Ints
    """The frequency of each in the annotated text."""
    _tokens: Int32s
    _words: Int16s
    _mentions: Int32s
    _sequences: Ints
    _labels: Mapping[str, Int16s]

    @classmethod
    def open(cls, folder: str | Path) -> PackedText:
        """Open a complete folder; raise if a file is missing or truncated."""
        folder = Path(folder)
        manifest = PACKED.read(folder)
        PACKED.check_files(folder, manifest)
        try:
            specs = _ARRAYS | {name: _LABELS[name] for name in manifest.get("labels", ())}
            arrays = open_arrays(folder, specs)
            _check_sequences(arrays)
            entities = pq.read_table(folder / ENTITIES)
        except (OSError, ValueError, KeyError, pa.ArrowException) as error:
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


def _check_sequences(arrays: Mapping[str, Array]) -> None:
    """Refuse sequences that do not divide the tokens and the mentions, or are empty."""
    sequences = arrays["sequences"]
    for column, name in enumerate(("tokens", "mentions")):
        check_ends("sequences", np.append(0, sequences[:, column]), len(arrays[name]))
    if not bool((np.diff(sequences[:, 0], prepend=0) > 0).all()):
        raise ValueError("sequences: one has no tokens")


def read_entities(shards: Path, min_count: int) -> pa.Table:
    """Return the concepts with a minimum frequency: ``id`` and ``count``, most frequent first.

    Args:
        shards: Folder of annotated text.
        min_count: Minimum frequency.
    """
    counted = _read_frequencies(shards)
    frequent = counted.filter(pc.greater_equal(counted["count"], min_count))
    return frequent.sort_by([("count", "descending"), ("id", "ascending")])


def count_entities(shards: Path, ids: Sequence[str]) -> pa.Table:
    """Return the frequencies of given entities, in their order.

    Args:
        shards: Folder of annotated text.
        ids: Ids of the entities.
    """
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
        parts = folder.with_name(f"{folder.name}.parts")
        with sole_writer(folder, wait=True):
            if not PACKED.is_at(folder):  # another process may have packed it meanwhile
                job = PackingJob.plan(config, tokenizer, shards, entities, kb, parts)
                _build(folder, job, made_from, progress or Progress())
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
    """List the parts in their order: the originals of all shards, then copies of all of them.

    Args:
        shards: Shards of annotated text.
        config: Settings of the stream.
    """
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
    """Data that all parts share: settings, tokenizer, entities, output folder."""

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
        """Plan the packing of some shards.

        Args:
            config: Settings of the stream.
            tokenizer: Tokenizer of the model.
            shards: Shards of annotated text.
            entities: Ids of a model's entities; default: those of the text.
            kb: Knowledge base, for substitution by synonyms and for segments.
            folder: Folder of the packed text.
        """
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
    """Create the folder of parts; keep those of an interrupted run that packed the same.

    Args:
        folder: Folder of the parts.
        made_from: Fingerprints of what they are made from.
    """
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
