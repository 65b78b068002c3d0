"""Stretches of text as tokens of a subword tokenizer: the one rule, for training and tasks alike.

A token belongs to a stretch if they share a character. The tokenizer says which characters of
the unaltered text a token stands for (``offsets`` of the fast ones, end exclusive), so that
accents taken off, lower case, characters it does not know and scripts without blanks need no
guessing. A token without characters, such as ``[CLS]``, belongs to nothing.
"""

from __future__ import annotations

import functools
import re
import unicodedata

import numpy as np
import numpy.typing as npt

from biograft.text import HAN

Ints = npt.NDArray[np.int64]

NONE = -1
"""Where a stretch has no token, or a token no stretch."""


def align_spans(offsets: npt.ArrayLike, spans: npt.ArrayLike) -> Ints:
    """Give the first and the last token of each span, both inclusive; ``NONE`` where no token is.

    ``offsets`` (tokens, 2) are the start and end of each token of one text, in its order;
    ``spans`` (spans, 2) may be in any order and overlap.
    """
    places, wanted = _pairs(offsets), _pairs(spans)
    held = np.flatnonzero(places[:, 0] < places[:, 1])
    starts, ends = places[held].T
    first = np.searchsorted(ends, wanted[:, 0], side="right")  # the first that ends after the start
    last = np.searchsorted(starts, wanted[:, 1], side="left") - 1  # the last that starts before it
    found = (first <= last) & (wanted[:, 0] < wanted[:, 1])
    tokens = np.full(wanted.shape, NONE, np.int64)
    tokens[found, 0] = held[first[found]]
    tokens[found, 1] = held[last[found]]
    return tokens


def word_numbers(offsets: npt.ArrayLike, words: npt.ArrayLike) -> Ints:
    """Give the number of the word that each token belongs to; ``NONE`` for one of no word.

    ``words`` (words, 2) are disjoint and ascending. A token of several belongs to the first.
    """
    places, stretches = _pairs(offsets), _pairs(words)
    if not len(stretches):
        return np.full(len(places), NONE, np.int64)
    number = np.searchsorted(stretches[:, 1], places[:, 0], side="right")
    starts = stretches[np.minimum(number, len(stretches) - 1), 0]
    held = (number < len(stretches)) & (starts < places[:, 1]) & (places[:, 0] < places[:, 1])
    return np.where(held, number, NONE).astype(np.int64)


def _pairs(values: npt.ArrayLike) -> Ints:
    return np.asarray(values, np.int64).reshape(-1, 2)


_ALONE = rf"\u3005-\u30ff{HAN}"  # kana, Chinese characters
_LETTER = rf"[^\W_{_ALONE}]"
_LAST = 0x20000  # scripts end here


def split_tokens(text: str) -> list[tuple[int, int]]:
    """Say where the tokens of a text stand, in order."""
    return [match.span() for match in _rule().finditer(text)]


@functools.cache
def _rule() -> re.Pattern[str]:
    marks = "".join(
        re.escape(chr(code))
        for code in range(_LAST)
        if unicodedata.category(chr(code)).startswith("M")
    )
    letters = rf"{_LETTER}+(?:[{marks}]+{_LETTER}*)*"
    return re.compile(rf"{letters}|(?:[{_ALONE}]|[^\w\s]|_)[{marks}]*")
