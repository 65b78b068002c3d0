"""Pack tokenised documents into sequences of limited length.

Documents are split between sentences, else between words, if possible never within a mention. A
split position is the index of the token after the split.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from biograft.training.objectives.examples import IGNORED, SPECIAL, Ints
from biograft.training.pretraining.stream_configs import AnnotatedTextConfig
from biograft.training.pretraining.tokenisation import PackingCounts, TokenisedDocument


def last_sentence_end(document: TokenisedDocument, start: int, limit: int) -> int | None:
    """Find the last position between two sentences after ``start``, at most ``limit``."""
    row = int(np.searchsorted(document.sentences, limit, side="right")) - 1
    position = int(document.sentences[row]) if row >= 0 else start
    return position if position > start else None


def choose_end(document: TokenisedDocument, start: int, room: int) -> int:
    """Find the end of a part of at most ``room`` tokens.

    It is between sentences if this leaves at most half of the room empty, else between words, else
    (in a mention or word longer than the room) anywhere.
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
    """Find the position nearest the middle of a part, between sentences if possible."""
    inner = document.sentences[(document.sentences > start) & (document.sentences < end)]
    positions = inner if len(inner) else split_positions(document, start, end)
    if not len(positions):
        return None
    return int(positions[np.argmin(np.abs(2 * positions - start - end))])


def split_positions(document: TokenisedDocument, start: int, stop: int) -> Ints:
    """Find the positions between ``start`` and ``stop`` that are in no word and no mention."""
    positions: Ints = np.arange(start + 1, stop)
    free: npt.NDArray[np.bool_] = document.words[positions] != document.words[positions - 1]
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


@dataclass(frozen=True, slots=True)
class PackedSequence:
    """A sequence of tokens with its words, mentions and labels."""

    tokens: Ints
    words: Ints
    mentions: Ints
    second: int
    """The start of its second segment; 0 if it has none."""
    document: int
    """The number of its first document."""
    token_labels: Mapping[str, Ints] = field(default_factory=dict)
    mention_labels: Mapping[str, Ints] = field(default_factory=dict)
    """As those of a ``TokenisedDocument``."""


class Packer:
    """Builds ``[CLS] part [SEP] part [SEP]``, of parts of several documents or two of one."""

    def __init__(self, config: AnnotatedTextConfig, first: int, separator: int) -> None:
        self.config, self.counts = config, PackingCounts()
        self._first, self._separator = first, separator

    def pack(self, documents: Iterable[TokenisedDocument]) -> Iterator[PackedSequence]:
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

    def _sequence(self, parts: list[DocumentPart]) -> PackedSequence:
        tokens, words = [np.array([self._first])], [np.array([SPECIAL])]
        mentions, scores, selections = [], [], []
        length, n_words = 1, 0
        for part in parts:
            document, inside = part.document, slice(part.start, part.end)
            own = document.words[inside] - document.words[part.start] + n_words
            tokens += [document.tokens[inside], np.array([self._separator])]
            words += [own, np.array([SPECIAL])]
            whole = self._whole_mentions(part)
            mentions.append(document.mentions[whole] + np.array([length - part.start] * 2 + [0]))
            scores.append(document.scores[whole])
            selections.append(whole)
            length, n_words = length + len(part) + 1, int(own[-1]) + 1
        best = self._best(np.concatenate(mentions), np.concatenate(scores))
        return PackedSequence(
            tokens=np.concatenate(tokens),
            words=np.concatenate(words),
            mentions=np.concatenate(mentions)[best],
            second=len(parts[0]) + 2 if self.config.two_segments else 0,
            document=parts[0].document.index,
            token_labels=_token_labels(parts),
            mention_labels={
                name: np.concatenate(
                    [
                        p.document.mention_labels[name][k]
                        for p, k in zip(parts, selections, strict=True)
                    ]
                )[best]
                for name in parts[0].document.mention_labels
            },
        )

    def _whole_mentions(self, part: DocumentPart) -> npt.NDArray[np.bool_]:
        """Select the mentions that are within a part, and count those that it cuts."""
        starting = _starting_in(part)
        whole = starting & (part.document.mentions[:, 1] < part.end)
        self.counts.n_cut += int(starting.sum() - whole.sum())
        return whole

    def _best(self, mentions: Ints, scores: npt.NDArray[np.float64]) -> Ints:
        """Select the mentions with the best scores, of equal ones the first."""
        max_mentions = self.config.max_mentions or len(mentions)
        best = np.sort(np.argsort(-scores, kind="stable")[:max_mentions])
        self.counts.n_sequences += 1
        self.counts.n_beyond += len(mentions) - len(best)
        self.counts.n_mentions += len(best)
        self.counts.n_outside_table += int((mentions[best, 2] < 0).sum())
        return best


def _token_labels(parts: Sequence[DocumentPart]) -> dict[str, Ints]:
    """Concatenate the token labels of parts; special tokens have none."""
    none, labels = np.array([IGNORED]), {}
    for name in parts[0].document.token_labels:
        values = [none]
        for part in parts:
            values += [part.document.token_labels[name][part.start : part.end], none]
        labels[name] = np.concatenate(values)
    return labels


def _starting_in(part: DocumentPart) -> npt.NDArray[np.bool_]:
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
