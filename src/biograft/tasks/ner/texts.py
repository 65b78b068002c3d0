"""Documents as texts to be read one by one: their words, and the tokens of each word.

A word is what one label is given to. Where a file comes in tokens (CoNLL), words are these; else
they are what the tokenizer takes apart first: words and signs, in Chinese characters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from biograft.corpus.alignment import NONE, align_spans, word_numbers
from biograft.corpus.formats.tokenised import TOKENS, tokens_of
from biograft.corpus.sentences import split_sentences
from biograft.documents import Document, Mention, Passage
from biograft.tasks.tokens import Ints, TaskTokenizer, TextTokens

WordSpan = tuple[int, int, str]
"""First word, behind the last, type."""


@dataclass(frozen=True, slots=True)
class ReadText:
    """A text that is read by itself."""

    document: int
    """Number of its document among those read."""
    words: Ints
    """(words, 2): where each stands in the document; those without any token are none."""
    tokens: tuple[tuple[int, ...], ...]
    """Of each word."""


def read_texts(
    documents: Sequence[Document], tokenizer: TaskTokenizer, read: str
) -> list[ReadText]:
    """Take documents apart into texts, and these into words."""
    sections = [
        (number, section)
        for number, document in enumerate(documents)
        for section in _sections(document, read)
    ]
    texts = [documents[number].text[part.start : part.end] for number, part in sections]
    return [
        _read(number, documents[number], part, tokens, tokenizer.room)
        for (number, part), tokens in zip(sections, tokenizer.read(texts), strict=True)
    ]


def _sections(document: Document, read: str) -> Iterator[Passage]:
    """Give what is read by itself, in order and disjoint; mentions outside are lost."""
    whole = Passage(0, len(document.text), "")
    passages = sorted(document.passages, key=lambda p: (p.start, -p.end)) or [whole]
    if read == "documents":
        in_tokens = all(passage.kind == TOKENS for passage in passages)
        passages = [Passage(0, len(document.text), TOKENS if in_tokens else "")]
    reached = 0
    for passage in passages:
        if passage.start < reached:
            continue  # inside the one before
        reached = passage.end
        if read == "sentences" and passage.kind != TOKENS:
            for start, end in split_sentences(document.text[passage.start : passage.end]):
                yield Passage(passage.start + start, passage.start + end, "")
        else:
            yield passage


def _read(
    number: int, document: Document, part: Passage, tokens: TextTokens, room: int
) -> ReadText:
    offsets = tokens.offsets + part.start
    if part.kind == TOKENS:
        words = np.array(_blank_parted(document, part), np.int64).reshape(-1, 2)
        numbers = word_numbers(offsets, words)
    else:
        numbers = tokens.words
    held = numbers != NONE
    ids = np.array(tokens.ids, np.int64)[held]
    offsets, numbers = offsets[held], numbers[held]
    starts = np.flatnonzero(np.diff(numbers, prepend=NONE))
    ends = np.append(starts[1:], len(numbers))
    bounds = words[numbers[starts]] if part.kind == TOKENS else _bounds(offsets, starts, ends)
    pieces = [ids[start : min(end, start + room)] for start, end in zip(starts, ends, strict=True)]
    return ReadText(number, bounds, tuple(tuple(piece.tolist()) for piece in pieces))


def _blank_parted(document: Document, part: Passage) -> list[tuple[int, int]]:
    """Say where tokens stand that blanks (between sentences: line ends) part."""
    lines = [p for p in document.passages if part.start <= p.start and p.end <= part.end]
    return [place for line in lines or [part] for place in tokens_of(document, line)]


def _bounds(offsets: Ints, starts: Ints, ends: Ints) -> Ints:
    """Give the bounds of words from those of their tokens."""
    if not len(starts):
        return np.zeros((0, 2), np.int64)
    return np.column_stack([offsets[starts, 0], offsets[ends - 1, 1]])


def find_spans(
    text: ReadText, mentions: Sequence[Mention], *, nested: bool, lost: Counter[str]
) -> list[WordSpan]:
    """Give the words of the mentions of a text, in order; what cannot be learned is counted.

    Unless ``nested``, of mentions that share words the longest stays.
    """
    bounds = [(mention.start, mention.end) for mention in mentions]
    spans: list[WordSpan] = []
    for mention, (first, last) in zip(mentions, align_spans(text.words, bounds), strict=True):
        if first == NONE:
            lost["mentions without any token"] += 1
        else:
            spans.append((int(first), int(last) + 1, mention.type))
    distinct = sorted(set(spans), key=lambda span: (span[0] - span[1], span))
    if nested:
        return sorted(distinct)
    taken = np.zeros(len(text.words), bool)
    kept = []
    for first, end, kind in distinct:
        if taken[first:end].any():
            lost["mentions that share words with a longer one"] += 1
        else:
            taken[first:end] = True
            kept.append((first, end, kind))
    return sorted(kept)
