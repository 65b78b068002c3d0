"""Tokenised documents: annotated spans as token spans, words, sentences and entity segments."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from biograft.errors import ConfigError
from biograft.text.alignment import NONE, align_spans, split_tokens, word_indices
from biograft.text.segmentation.segmenter import SegmentedEntity
from biograft.text.sentences import split_sentences
from biograft.text.shards import LinkedSpan
from biograft.training.objectives.examples import (
    CONSISTENT,
    HEAD_OFFSET,
    IGNORED,
    SEGMENT_ENDS,
    Ints,
)
from biograft.training.pretraining.substitution import IndexedDocument


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


@dataclass(frozen=True, slots=True)
class TokenisedDocument:
    """The tokens of a text, without special ones."""

    index: int
    tokens: Ints
    words: Ints
    """The word index of each token, from 0."""
    mentions: Ints
    """First token, last token, row of the entity; disjoint and ascending."""
    scores: npt.NDArray[np.float64]
    """The score of each mention."""
    sentences: Ints
    """The first tokens of sentences, except the first one."""
    token_labels: Mapping[str, Ints] = field(default_factory=dict)
    mention_labels: Mapping[str, Ints] = field(default_factory=dict)
    """As those of a ``TextExample``."""


class DocumentTokenizer:
    """Tokenises with a copy of a fast tokenizer that reads ``[SEP]`` in a text as plain text."""

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
        """Tokenise documents."""
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
