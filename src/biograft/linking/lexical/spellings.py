"""Other spellings of Chinese texts: a character of the same sound or of similar shape for one.

A character may be wrong if neither the names nor ordinary text have it beside its neighbour. It is
replaced by those that names have beside both neighbours: 心机梗死 becomes 心肌梗死. A character of
a side is never wrong, since it stands before any name.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from biograft.arrays import Ints, Uint64s, Uints
from biograft.compute import njit
from biograft.kb.similar_characters import CONTRASTS, is_contrast, similar_characters
from biograft.linking.lexical.ngrams import NgramVocabulary, TextCodes, find_slot, pair_key
from biograft.text.spelling.corrections import ordinary_pairs

SIDES = CONTRASTS[0]
_FIRST_HAN, _LAST_HAN = ord("㐀"), ord("鿿")


def other_spellings(texts: TextCodes, vocabulary: NgramVocabulary) -> list[tuple[int, str]]:
    """Return other spellings of texts, each with the number of its text.

    Args:
        texts: Code points of the texts.
        vocabulary: N-grams of the names.
    """
    if not len(texts.codes) or texts.codes.max() < _FIRST_HAN:
        return []
    found = _replaced(texts, vocabulary.keys, *_similar(), ordinary_pairs())
    spelt = []
    for text, at, code in found.tolist():
        codes = texts.codes[texts.starts[text] + 1 : texts.starts[text + 1]].copy()
        codes[at - texts.starts[text] - 1] = code
        spelt.append((text, codes.tobytes().decode("utf-32-le")))
    return spelt


@cache
def _similar() -> tuple[Uints, Ints, Uints]:
    """Return characters in order, where those that each may be an error for begin, and these."""
    starts, near = [0], list[int]()
    table = similar_characters()
    for char in sorted(table):
        others = dict.fromkeys("".join(table[char])) if char not in SIDES else ()
        near += [ord(other) for other in others if not is_contrast(char, other)]
        starts.append(len(near))
    chars = np.array([*map(ord, sorted(table))], np.uint32)
    return chars, np.array(starts, np.int64), np.array(near, np.uint32)


@njit(work=lambda texts, *_: 100 * len(texts.codes))
def _replaced(
    texts: TextCodes, keys: Uint64s, chars: Uints, starts: Ints, near: Uints, ordinary: Uint64s
) -> Ints:
    """Return the text, the place and the other character of each spelling: (spellings, 3)."""
    out, n = np.empty((64, 3), np.int64), 0
    for text in range(len(texts.starts) - 1):
        known_before = True
        for at in range(texts.starts[text] + 1, texts.starts[text + 1]):
            before, char, behind = texts.codes[at - 1], texts.codes[at], texts.codes[at + 1]
            known_behind = _is_known(char, behind, keys, ordinary)
            may_be_wrong, known_before = not (known_before and known_behind), known_behind
            if not may_be_wrong:
                continue
            row = np.searchsorted(chars, char)
            if row == len(chars) or chars[row] != char:
                continue
            for k in range(starts[row], starts[row + 1]):
                other = near[k]
                if not (_is_name(before, other, keys) and _is_name(other, behind, keys)):
                    continue
                if n == len(out):
                    out = np.concatenate((out, np.empty_like(out)))
                out[n, 0], out[n, 1], out[n, 2] = text, at, other
                n += 1
    return out[:n]


@njit()
def _is_known(first: int, second: int, keys: Uint64s, ordinary: Uint64s) -> bool:
    """Whether names or ordinary text have a pair of Chinese characters; others are known."""
    if _is_name(first, second, keys):
        return True
    key = np.uint64(first) << np.uint64(32) | np.uint64(second)
    at = np.searchsorted(ordinary, key)
    return bool(at < len(ordinary) and ordinary[at] == key)


@njit()
def _is_name(first: int, second: int, keys: Uint64s) -> bool:
    """Whether names have a pair of Chinese characters; other pairs are taken for known."""
    for code in (first, second):
        if not _FIRST_HAN <= code <= _LAST_HAN:
            return True
    return bool(keys[find_slot(keys, pair_key(first, second))] != 0)
