"""Documents as texts to be read one by one: their words, and the tokens of each word.

A word is what one label is given to. Where a file comes in tokens (CoNLL), words are these; else
they are cut by our own rule, the same for all encoders: runs of letters and digits, each sign,
each Chinese character.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from biograft.corpus.alignment import NONE, align_spans
from biograft.corpus.formats.tokenised import TOKENS, tokens_of
from biograft.corpus.sentences import split_sentences
from biograft.corpus.splitting import split_tokens
from biograft.documents import Document, Mention, Passage
from biograft.tasks.tokens import Ints, TaskTokenizer, TextTokens
from biograft.tasks.words import tokens_of_words

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
        _read(number, documents[number], part, tokens, tokenizer)
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
    number: int, document: Document, part: Passage, tokens: TextTokens, tokenizer: TaskTokenizer
) -> ReadText:
    text = document.text[part.start : part.end]
    places = _blank_parted(document, part) if part.kind == TOKENS else split_tokens(text)
    words = np.array(places, np.int64).reshape(-1, 2)
    if part.kind == TOKENS:
        words -= part.start
    pieces = tokens_of_words(text, words, tokens, tokenizer)
    held = np.array([bool(piece) for piece in pieces], bool)
    cut = tuple(tuple(piece[: tokenizer.room]) for piece in pieces if piece)
    return ReadText(number, words[held] + part.start, cut)


def _blank_parted(document: Document, part: Passage) -> list[tuple[int, int]]:
    """Say where tokens stand that blanks (between sentences: line ends) part."""
    lines = [p for p in document.passages if part.start <= p.start and p.end <= part.end]
    return [place for line in lines or [part] for place in tokens_of(document, line)]


def find_spans(
    text: ReadText, mentions: Sequence[Mention], *, nested: bool, lost: Counter[str]
) -> list[WordSpan]:
    """Give the words of the mentions of a text, in order; what cannot be learned is counted.

    Of a mention whose bounds are not those of words all its words are learned, though the answer
    will not be just it. Unless ``nested``, of mentions that share words the longest stays.
    """
    bounds = [(mention.start, mention.end) for mention in mentions]
    exact: dict[WordSpan, bool] = {}
    for mention, (first, last) in zip(mentions, align_spans(text.words, bounds), strict=True):
        if first == NONE:
            lost["mentions without any token"] += 1
            continue
        span = (int(first), int(last) + 1, mention.type)
        fits = (text.words[first, 0], text.words[last, 1]) == (mention.start, mention.end)
        if not fits:
            lost["mentions whose bounds are not those of words"] += 1
        exact[span] = exact.get(span, False) or fits
    return sorted(exact) if nested else _disjoint(exact, len(text.words), lost)


def _disjoint(exact: Mapping[WordSpan, bool], n_words: int, lost: Counter[str]) -> list[WordSpan]:
    """Choose the longest of spans that share words; those that were exact are lost by that."""
    taken = np.zeros(n_words, bool)
    kept = []
    for first, end, kind in sorted(exact, key=lambda span: (span[0] - span[1], span)):
        if not taken[first:end].any():
            taken[first:end] = True
            kept.append((first, end, kind))
        elif exact[first, end, kind]:
            lost["mentions that share words with a longer one"] += 1
    return sorted(kept)
