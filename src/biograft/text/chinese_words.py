"""Borders of Chinese words: which parts of a text are words, and which only look like names.

Chinese has no blanks, so that a name may stand in a text where no word of it begins or ends: 性病
in 器质性病变, 结肠镜 without 结, 低血糖症 in 低血糖症状. A unigram model of ordinary words decides.
The loss of a border is how much less probable the best split with it is than the best split of
all: 0 where the best split has it. With F(i) the log probability of the best split before i, and
B(i) that of the best split behind it, the loss is F(n) - F(i) - B(i), computed for all borders in
two passes.

The words are those of ordinary medical text with at most three characters, none of which is a
prefix before another word: 胃溃疡 may be cut. They are the same for every store, so that no name of
a store changes how a text is read. ``benchmarks/ordinary_words.py`` writes them.
"""

from __future__ import annotations

import gzip
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from biograft.arrays import Flags, Floats, Ints
from biograft.compute import njit
from biograft.text.tokens import (
    HASH_SEED,
    HASH_STEP,
    Codes,
    Hashes,
    Tokens,
    finish_hash,
    han_codes,
    hash_slots,
    hash_words,
    slot_of,
)

WORDS = "chinese_words.txt.gz"
MAX_LOSS = 1.5
"""The loss, in nats, of a border that is still one. Names of two stores in CMeEE-V2: of 10,689
that are right 5 fewer are found, of 9,979 others 494."""
_IMPOSSIBLE = -1e9


def at_borders(tokens: Tokens, begin: Ints, stop: Ints) -> Flags:
    """Return which spans of tokens begin and end at borders of words; other scripts always do.

    Args:
        tokens: Tokens of texts.
        begin: First token of each span.
        stop: Its last token.
    """
    codes = han_codes(tokens.letters, np.diff(tokens.ends, prepend=0), tokens.ends)
    joined = np.zeros(len(codes) + 1, np.bool_)  # whether a character touches the one before
    joined[1:-1] = (codes[:-1] > 0) & (codes[1:] > 0) & (tokens.last[:-1] == tokens.first[1:])
    doubtful = joined[begin] | joined[stop + 1]
    if not doubtful.any():
        return ~doubtful
    losses = _losses(codes, joined, *_words())
    whole: Flags = (losses[begin] <= MAX_LOSS) & (losses[stop + 1] <= MAX_LOSS)
    return whole


@cache
def _words() -> tuple[Hashes, Floats, float]:
    """Return an open hash table of the words, their log probabilities, and that of no word."""
    packed = (files("biograft.text") / WORDS).read_bytes()
    lines = gzip.decompress(packed).decode().split("\n")
    words = {word: 1.5 * 2.0**k for k, line in enumerate(lines) for word in line.split()}
    counts = dict(zip(hash_words(list(words)).tolist(), words.values(), strict=True))
    slots = hash_slots(np.array(list(counts), np.uint64))
    total = sum(counts.values())
    logs = np.log([counts.get(key, total) / total for key in slots.tolist()])
    return slots, logs, float(np.log(0.5 / total))


@njit(inline="always")
def _score(slots: Hashes, logs: Floats, state: Any, missing: float) -> Any:
    """Return the log probability of a word."""
    at = slot_of(slots, finish_hash(state))
    return logs[at] if at >= 0 else missing


@njit(work=lambda codes, *_: 60 * len(codes))
def _losses(codes: Codes, joined: Flags, slots: Hashes, logs: Floats, unknown: float) -> Floats:
    """Return the loss of the border before each token, and of that behind the last."""
    n = len(codes)
    one, two, three = np.zeros(n), np.full(n, _IMPOSSIBLE), np.full(n, _IMPOSSIBLE)
    before, behind = np.zeros(n + 1), np.zeros(n + 1)
    for k in range(n):
        state = (HASH_SEED ^ np.uint64(codes[k])) * HASH_STEP
        if codes[k]:
            one[k] = _score(slots, logs, state, unknown)
        if codes[k] and k + 1 < n and joined[k + 1]:
            state = (state ^ np.uint64(codes[k + 1])) * HASH_STEP
            two[k] = _score(slots, logs, state, _IMPOSSIBLE)
            if k + 2 < n and joined[k + 2]:
                state = (state ^ np.uint64(codes[k + 2])) * HASH_STEP
                three[k] = _score(slots, logs, state, _IMPOSSIBLE)
        best = before[k] + one[k]
        if k > 0:
            best = max(best, before[k - 1] + two[k - 1])
        if k > 1:
            best = max(best, before[k - 2] + three[k - 2])
        before[k + 1] = best
    for k in range(n - 1, -1, -1):
        best = behind[k + 1] + one[k]
        if k + 1 < n:
            best = max(best, behind[k + 2] + two[k])
        if k + 2 < n:
            best = max(best, behind[k + 3] + three[k])
        behind[k] = best
    losses: Floats = before[n] - before - behind
    return losses
