"""Alignment of character spans with the subword tokens of a tokenizer, for training and tasks.

A token belongs to a span if they share a character. The ``offsets`` of a fast tokenizer (end
exclusive) give the characters of the original text that a token stands for, whatever the tokenizer
normalises. A token without characters, such as ``[CLS]``, belongs to no span.
"""

from __future__ import annotations

import functools
import re
import unicodedata

import numpy as np
import numpy.typing as npt

from biograft.arrays import Ints
from biograft.kb.names import HAN

NONE = -1
"""The index of a span without a token, or of a token without a span."""


def align_spans(offsets: npt.ArrayLike, spans: npt.ArrayLike) -> Ints:
    """Return the first and the last token of each span, both inclusive; ``NONE`` if there is none.

    Args:
        offsets: Start and end of each token of one text, in its order: (tokens, 2).
        spans: Start and end of each span, in any order; they may overlap: (spans, 2).
    """
    token_bounds, bounds = _pairs(offsets), _pairs(spans)
    nonempty = np.flatnonzero(token_bounds[:, 0] < token_bounds[:, 1])
    starts, ends = token_bounds[nonempty].T
    first = np.searchsorted(ends, bounds[:, 0], side="right")  # the first that ends after the start
    last = np.searchsorted(starts, bounds[:, 1], side="left") - 1  # the last that starts before it
    aligned = (first <= last) & (bounds[:, 0] < bounds[:, 1])
    tokens = np.full(bounds.shape, NONE, np.int64)
    tokens[aligned, 0] = nonempty[first[aligned]]
    tokens[aligned, 1] = nonempty[last[aligned]]
    return tokens


def word_indices(offsets: npt.ArrayLike, words: npt.ArrayLike) -> Ints:
    """Return the index of the word that each token belongs to; ``NONE`` if there is none.

    A token of several words belongs to the first.

    Args:
        offsets: Start and end of each token: (tokens, 2).
        words: Start and end of each word, disjoint and sorted: (words, 2).
    """
    tokens, bounds = _pairs(offsets), _pairs(words)
    if not len(bounds):
        return np.full(len(tokens), NONE, np.int64)
    index = np.searchsorted(bounds[:, 1], tokens[:, 0], side="right")
    starts = bounds[np.minimum(index, len(bounds) - 1), 0]
    inside = (index < len(bounds)) & (starts < tokens[:, 1]) & (tokens[:, 0] < tokens[:, 1])
    return np.where(inside, index, NONE).astype(np.int64)


def _pairs(values: npt.ArrayLike) -> Ints:
    return np.asarray(values, np.int64).reshape(-1, 2)


_SINGLE = rf"\u3005-\u30ff{HAN}"  # kana, Chinese characters
_LETTER = rf"[^\W_{_SINGLE}]"
_LAST = 0x20000  # scripts end here


def split_tokens(text: str) -> list[tuple[int, int]]:
    """Return the offsets of the words, Chinese characters and punctuation of a text."""
    return [match.span() for match in _token_pattern().finditer(text)]


@functools.cache
def _token_pattern() -> re.Pattern[str]:
    marks = "".join(
        re.escape(chr(code))
        for code in range(_LAST)
        if unicodedata.category(chr(code)).startswith("M")
    )
    letters = rf"{_LETTER}+(?:[{marks}]+{_LETTER}*)*"
    return re.compile(rf"{letters}|(?:[{_SINGLE}]|[^\w\s]|_)[{marks}]*")
