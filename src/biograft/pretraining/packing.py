"""Where a document may be cut: between sentences, else words, never within a mention if possible.

A place is the token before which is cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from biograft.objectives.examples import IGNORED, SPECIAL, Ints
from biograft.pretraining.stream_configs import AnnotatedTextConfig
from biograft.pretraining.tokenisation import PackingCounts, TokenisedDocument


def last_sentence_end(document: TokenisedDocument, start: int, limit: int) -> int | None:
    """Give the last place between two sentences after ``start``, at most at ``limit``."""
    row = int(np.searchsorted(document.sentences, limit, side="right")) - 1
    place = int(document.sentences[row]) if row >= 0 else start
    return place if place > start else None


def choose_end(document: TokenisedDocument, start: int, room: int) -> int:
    """Give where a piece of at most ``room`` tokens ends.

    That is between sentences if this leaves no more than half of the room empty, else between
    words, else (in a mention or word longer than the room) anywhere.
    """
    limit = start + room
    if limit >= len(document.tokens):
        return len(document.tokens)
    place = last_sentence_end(document, start, limit)
    if place is not None and place - start >= room / 2:
        return place
    places = free_places(document, start, limit + 1)
    return int(places[-1]) if len(places) else limit


def choose_middle(document: TokenisedDocument, start: int, end: int) -> int | None:
    """Give the place nearest the middle of a piece, between sentences if there is one."""
    inner = document.sentences[(document.sentences > start) & (document.sentences < end)]
    places = inner if len(inner) else free_places(document, start, end)
    if not len(places):
        return None
    return int(places[np.argmin(np.abs(2 * places - start - end))])


def free_places(document: TokenisedDocument, start: int, stop: int) -> Ints:
    """Give the places after ``start`` and before ``stop`` within no word and no mention."""
    places: Ints = np.arange(start + 1, stop)
    free: npt.NDArray[np.bool_] = document.words[places] != document.words[places - 1]
    for first, last in document.mentions[_touched(document, start, stop), :2]:
        free[max(first - start, 0) : max(last - start, 0)] = False
    found: Ints = places[free]
    return found


def _touched(document: TokenisedDocument, start: int, stop: int) -> slice:
    """Say which mentions have a token from ``start`` on and before ``stop``."""
    return slice(
        int(np.searchsorted(document.mentions[:, 1], start)),
        int(np.searchsorted(document.mentions[:, 0], stop)),
    )


@dataclass(frozen=True, slots=True)
class Piece:
    """Tokens of one document, the last one exclusive."""

    document: TokenisedDocument
    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class PackedSequence:
    """What is kept of a sequence."""

    tokens: Ints
    words: Ints
    mentions: Ints
    second: int
    """Where its second segment begins; 0 if it has none."""
    document: int
    """Number of its first document."""
    token_labels: Mapping[str, Ints] = field(default_factory=dict)
    mention_labels: Mapping[str, Ints] = field(default_factory=dict)
    """As those of a ``TokenisedDocument``."""


class Packer:
    """Makes ``[CLS] piece [SEP] piece [SEP]``; pieces are of several documents or two of one."""

    def __init__(self, config: AnnotatedTextConfig, first: int, separator: int) -> None:
        self.config, self.counts = config, PackingCounts()
        self._first, self._separator = first, separator

    def pack(self, documents: Iterable[TokenisedDocument]) -> Iterator[PackedSequence]:
        """Give the sequences of documents, in their order."""
        if self.config.two_segments:
            pieces = self._part(self._cut(documents, self.config.max_length - 3))
        elif self.config.pack:
            pieces = self._fill(documents, self.config.max_length - 1)
        else:
            pieces = ([piece] for piece in self._cut(documents, self.config.max_length - 2))
        for some in pieces:
            yield self._sequence(some)

    def _cut(self, documents: Iterable[TokenisedDocument], room: int) -> Iterator[Piece]:
        """Cut documents to pieces, each for a sequence of its own."""
        for document in documents:
            start = 0
            while start < len(document.tokens):
                end = choose_end(document, start, room)
                yield Piece(document, start, end)
                start = end

    def _fill(self, documents: Iterable[TokenisedDocument], room: int) -> Iterator[list[Piece]]:
        """Fill sequences with what comes; each piece takes one token more, its separator.

        A sequence that has something already takes only whole sentences of what does not fit.
        """
        waiting: list[Piece] = []
        left = room
        for document in documents:
            start = 0
            while start < len(document.tokens):
                end = _filling_end(document, start, left - 1, empty=not waiting)
                if end is not None:
                    waiting.append(Piece(document, start, end))
                    left -= end - start + 1
                    start = end
                if end is None or end < len(document.tokens):
                    yield waiting
                    waiting, left = [], room
        if waiting:
            yield waiting

    def _part(self, pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
        """Part pieces in two; one that cannot be is left out and counted."""
        for piece in pieces:
            middle = choose_middle(piece.document, piece.start, piece.end)
            if middle is None:
                self.counts.n_left_out_tokens += len(piece)
                self.counts.n_cut += int(_starting_in(piece).sum())
                continue
            yield [
                Piece(piece.document, piece.start, middle),
                Piece(piece.document, middle, piece.end),
            ]

    def _sequence(self, pieces: list[Piece]) -> PackedSequence:
        tokens, words = [np.array([self._first])], [np.array([SPECIAL])]
        mentions, scores, kept = [], [], []
        length, n_words = 1, 0
        for piece in pieces:
            document, inside = piece.document, slice(piece.start, piece.end)
            own = document.words[inside] - document.words[piece.start] + n_words
            tokens += [document.tokens[inside], np.array([self._separator])]
            words += [own, np.array([SPECIAL])]
            found = self._whole_mentions(piece)
            mentions.append(document.mentions[found] + np.array([length - piece.start] * 2 + [0]))
            scores.append(document.scores[found])
            kept.append(found)
            length, n_words = length + len(piece) + 1, int(own[-1]) + 1
        best = self._best(np.concatenate(mentions), np.concatenate(scores))
        return PackedSequence(
            tokens=np.concatenate(tokens),
            words=np.concatenate(words),
            mentions=np.concatenate(mentions)[best],
            second=len(pieces[0]) + 2 if self.config.two_segments else 0,
            document=pieces[0].document.number,
            token_labels=_token_labels(pieces),
            mention_labels={
                name: np.concatenate(
                    [p.document.mention_labels[name][k] for p, k in zip(pieces, kept, strict=True)]
                )[best]
                for name in pieces[0].document.mention_labels
            },
        )

    def _whole_mentions(self, piece: Piece) -> npt.NDArray[np.bool_]:
        """Say which mentions of the document are in a piece, and count those that it cuts."""
        starting = _starting_in(piece)
        whole = starting & (piece.document.mentions[:, 1] < piece.end)
        self.counts.n_cut += int(starting.sum() - whole.sum())
        return whole

    def _best(self, mentions: Ints, scores: npt.NDArray[np.float64]) -> Ints:
        """Say which mentions are kept: those with the best scores, of equal ones the first."""
        most = self.config.max_mentions or len(mentions)
        kept = np.sort(np.argsort(-scores, kind="stable")[:most])
        self.counts.n_sequences += 1
        self.counts.n_beyond += len(mentions) - len(kept)
        self.counts.n_mentions += len(kept)
        self.counts.n_outside_table += int((mentions[kept, 2] < 0).sum())
        return kept


def _token_labels(pieces: Sequence[Piece]) -> dict[str, Ints]:
    """Put the labels of pieces together as their tokens are; special tokens have none."""
    none, labels = np.array([IGNORED]), {}
    for name in pieces[0].document.token_labels:
        parts = [none]
        for piece in pieces:
            parts += [piece.document.token_labels[name][piece.start : piece.end], none]
        labels[name] = np.concatenate(parts)
    return labels


def _starting_in(piece: Piece) -> npt.NDArray[np.bool_]:
    """Say which mentions of the document begin in a piece."""
    first = piece.document.mentions[:, 0]
    return (first >= piece.start) & (first < piece.end)


def _filling_end(document: TokenisedDocument, start: int, room: int, *, empty: bool) -> int | None:
    """Give how far a document goes in what is left of a sequence; nothing if it must wait."""
    if len(document.tokens) - start <= room:
        return len(document.tokens)
    return (
        choose_end(document, start, room)
        if empty
        else (last_sentence_end(document, start, start + room))
    )
