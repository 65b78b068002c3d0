"""What became of documents and spans when they were packed."""

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

from biograft.corpus.alignment import NONE, align_spans, split_tokens, word_numbers
from biograft.corpus.segmentation.heads import Segmented
from biograft.corpus.sentences import split_sentences
from biograft.corpus.shards import Span
from biograft.errors import ConfigError
from biograft.objectives.examples import CONSISTENT, HEAD_START, IGNORED, PIECE_ENDS, Ints
from biograft.pretraining.substitution import NumberedDocument


@dataclass(slots=True)
class PackingCounts:
    """Every span is a mention of a sequence, or counted under the reason why it is none."""

    n_documents: int = 0
    n_tokens: int = 0
    """Tokens of the documents, without special ones."""
    n_sequences: int = 0
    n_left_out_tokens: int = 0
    """Tokens of pieces too short to be parted in two segments."""
    n_spans: int = 0
    n_mentions: int = 0
    """Spans that are mentions of sequences."""
    n_outside_table: int = 0
    """Mentions, of these, whose concept is no entity; they are detected, not linked."""
    n_low_score: int = 0
    """Spans scored below ``min_score``."""
    n_without_token: int = 0
    """Spans of characters that the tokenizer leaves out."""
    n_overlapping: int = 0
    """Spans that share a token with one that is scored better."""
    n_cut: int = 0
    """Spans longer than a sequence, cut with it, or of a piece that is left out."""
    n_beyond: int = 0
    """Spans beyond ``max_mentions``, those with the lowest scores."""
    n_without_pieces: int = 0
    """Long entities of the documents whose pieces share a token: they are short ones here."""
    n_without_head: int = 0
    """Long entities of the documents whose head does not end them: their pieces are known."""

    def to_json(self) -> dict[str, int]:
        """Give the counts as plain values."""
        return asdict(self)


PIECES_VERSION = 2
"""Of what is said of pieces; text packed with another is packed anew."""


class Segmenter(Protocol):
    """Whatever takes entities apart, such as a ``Segmentation``."""

    def segment(self, text: str) -> Segmented:
        """Give the pieces of an entity."""


class Pieces(NamedTuple):
    """Of the mentions of a text, what their tokens are in long ones."""

    heads: Ints
    """Of each mention, how many of its tokens stand before its head; ``IGNORED`` if it is short, or
    if something else follows the head."""
    ends: Ints
    """Of each token, 1 where a piece of a long mention ends, 0 in one, else ``IGNORED``."""


class PieceFinder:
    """Segments mentions, equal ones once."""

    def __init__(self, segmenter: Segmenter) -> None:
        self._segmenter = segmenter
        self._known: dict[str, Segmented] = {}

    def find(
        self,
        text: str,
        offsets: Ints,
        mentions: Ints,
        spans: Sequence[tuple[int, int]],
        counts: PackingCounts,
    ) -> Pieces:
        """Find the pieces of mentions (rows: first token, last token) that have these spans.

        An entity whose pieces share a token, as in the middle of a word, is a short one here. Signs
        behind the last piece, as a closing bracket, are of it: an entity ends where its last piece
        does. Where anything follows the head, a bracket or "of the wall", the head is not told.
        """
        heads = np.full(len(mentions), IGNORED, np.int64)
        ends = np.full(len(offsets), IGNORED, np.int64)
        for number, (start, end) in enumerate(spans):
            cut = self._segment(text[start:end])
            if not cut.is_long:
                continue
            first, last = mentions[number, :2].tolist()
            parts = [*cut.pieces, cut.adjective, cut.head]
            places = align_spans(offsets, [(start + s, start + e) for s, e in parts])
            pieces, adjective, head = places[:-2], places[-2].tolist(), places[-1].tolist()
            if not _are_apart(pieces, first, last):
                counts.n_without_pieces += 1
                continue
            ends[first : last + 1] = 0
            ends[[*pieces[:-1, 1], last]] = 1
            if first <= adjective[0] <= adjective[1] < head[0] and head[1] == last:
                heads[number] = head[0] - first
            else:
                counts.n_without_head += 1
        return Pieces(heads, ends)

    def _segment(self, entity: str) -> Segmented:
        if entity not in self._known:
            self._known[entity] = self._segmenter.segment(entity)
        return self._known[entity]


def _are_apart(pieces: Ints, first: int, last: int) -> bool:
    """Whether pieces have tokens of their own, one behind the other, within a mention."""
    starts, ends = pieces.T
    inside = first <= starts[0] and ends[-1] <= last
    return bool(inside and (starts <= ends).all() and (ends[:-1] < starts[1:]).all())


WORDS_VERSION = 2
"""Of the rule for words; text packed by another is packed anew."""
_DOCUMENTS_AT_ONCE = 128
_OUTSIDE = -1
"""Row of a concept that is no entity of the table."""


@dataclass(frozen=True, slots=True)
class TokenisedDocument:
    """The tokens of a text, none of them special."""

    number: int
    tokens: Ints
    words: Ints
    """Number of the word of each token, from 0 on."""
    mentions: Ints
    """First token, last token, row of the entity; disjoint and ascending."""
    scores: npt.NDArray[np.float64]
    """Of each mention."""
    sentences: Ints
    """The tokens with which sentences begin, the first one left out."""
    token_labels: Mapping[str, Ints] = field(default_factory=dict)
    mention_labels: Mapping[str, Ints] = field(default_factory=dict)
    """As those of a ``TextExample``, but ``HEAD_START`` counts from the mention's first token."""


class DocumentTokenizer:
    """Tokenises with a copy of a fast tokenizer, in which ``[SEP]`` in a text is only text."""

    def __init__(
        self,
        tokenizer: Any,
        rows: Mapping[str, int],
        min_score: float,
        pieces: PieceFinder | None = None,
    ) -> None:
        self._backend = copy.deepcopy(fast_backend(tokenizer))
        self._backend.no_truncation()
        self._backend.no_padding()
        self._backend.encode_special_tokens = True
        self._rows, self._min_score, self._pieces = rows, min_score, pieces

    def tokenise(
        self, documents: Iterable[NumberedDocument], counts: PackingCounts
    ) -> Iterator[TokenisedDocument]:
        """Tokenise documents."""
        waiting = iter(documents)
        while some := list(islice(waiting, _DOCUMENTS_AT_ONCE)):
            texts = [each.document.text for each in some]
            found = self._backend.encode_batch(texts, add_special_tokens=False)
            for each, encoding in zip(some, found, strict=True):
                yield self._document(each, encoding, counts)

    def _document(
        self, given: NumberedDocument, encoding: Any, counts: PackingCounts
    ) -> TokenisedDocument:
        text, spans = given.document.text, given.document.spans
        offsets = np.array(encoding.offsets, np.int64).reshape(-1, 2)
        chosen, mentions = self._mentions(spans, offsets, counts)
        counts.n_documents += 1
        counts.n_tokens += len(encoding.ids)
        token_labels, mention_labels = {}, {}
        if given.consistent is not None:
            mention_labels[CONSISTENT] = np.array(given.consistent, np.int64)[chosen]
        if self._pieces is not None:
            places = [(spans[place].start, spans[place].end) for place in chosen]
            found = self._pieces.find(text, offsets, mentions, places, counts)
            token_labels[PIECE_ENDS], mention_labels[HEAD_START] = found.ends, found.heads
        return TokenisedDocument(
            number=given.number,
            tokens=np.array(encoding.ids, np.int64),
            words=_number_words(word_numbers(offsets, split_tokens(text))),
            mentions=mentions,
            scores=np.array([spans[place].score for place in chosen], np.float64),
            sentences=_sentence_starts(text, offsets, mentions),
            token_labels=token_labels,
            mention_labels=mention_labels,
        )

    def _mentions(
        self, spans: Sequence[Span], offsets: Ints, counts: PackingCounts
    ) -> tuple[list[int], Ints]:
        """Find the tokens of the spans; of those that share a token the best-scored is kept.

        Which spans are mentions comes first, in their order.
        """
        counts.n_spans += len(spans)
        kept = [place for place, span in enumerate(spans) if span.score >= self._min_score]
        counts.n_low_score += len(spans) - len(kept)
        places = align_spans(offsets, [(span.start, span.end) for span in spans])
        taken, chosen = np.zeros(len(offsets), bool), []
        for place in sorted(kept, key=lambda row: -spans[row].score):
            first, last = places[place]
            if first < 0:
                counts.n_without_token += 1
            elif taken[first : last + 1].any():
                counts.n_overlapping += 1
            else:
                taken[first : last + 1] = True
                chosen.append(place)
        chosen.sort(key=lambda place: int(places[place, 0]))
        rows = [self._rows.get(spans[place].concept, _OUTSIDE) for place in chosen]
        return chosen, np.column_stack([places[chosen], np.array(rows, np.int64)])


def fast_backend(tokenizer: Any) -> Any:
    """Give what does the work in a fast tokenizer; refuse one that cannot say offsets."""
    if not getattr(tokenizer, "is_fast", False):
        raise ConfigError(
            f"encoder: {type(tokenizer).__name__} is no fast tokenizer and cannot say which "
            "characters a token stands for; choose an encoder with a tokenizer.json"
        )
    return tokenizer.backend_tokenizer


def hash_tokenizer(tokenizer: Any) -> str:
    """Compute the SHA-256 of all that decides the tokens of a text."""
    described = json.loads(fast_backend(tokenizer).to_str())
    described["truncation"] = described["padding"] = None  # left from the last call, and unused
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()


def _number_words(words: Ints) -> Ints:
    """Number the words anew, from 0 on; a token of none is a word of its own."""
    begins = (words[1:] != words[:-1]) | (words[1:] == NONE)
    return np.cumsum(np.append(np.zeros(min(1, len(words)), bool), begins))


def _sentence_starts(text: str, offsets: Ints, mentions: Ints) -> Ints:
    """Find the tokens with which sentences begin, the first left out, and none within a mention."""
    first = align_spans(offsets, split_sentences(text))[:, 0]
    starts = np.unique(first[first > 0])
    inside = np.zeros(len(offsets), bool)
    for begin, end in mentions[:, :2]:
        inside[begin + 1 : end + 1] = True
    return starts[~inside[starts]]
