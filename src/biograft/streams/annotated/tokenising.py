"""Documents to tokens: words, mentions and sentences become places in the tokens."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from biograft.corpus.alignment import NONE, align_spans, word_numbers
from biograft.corpus.sentences import split_sentences
from biograft.corpus.shards import Span
from biograft.corpus.splitting import split_tokens
from biograft.errors import ConfigError
from biograft.objectives.records import CONSISTENT, HEAD_START, PIECE_ENDS, Ints
from biograft.streams.annotated.counts import PackingCounts
from biograft.streams.annotated.pieces import PieceFinder
from biograft.streams.annotated.replacing import NumberedDocument

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
