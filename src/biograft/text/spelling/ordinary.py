"""Words and Chinese character pairs of ordinary text, which are not taken for misspelt names.

They were counted in public abstracts, definitions and Chinese medical questions, and stand in at
least two of these texts. ``benchmarks/ordinary_words.py`` says which, and writes the files again.
"""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

import numpy as np

from biograft.kb.names import HAN
from biograft.text.name_rules import COMMON_WORDS, FUNCTION_WORDS
from biograft.text.spans import Flags
from biograft.text.tokens import Codes, Hashes, hash_words, simplify

WORDS, PAIRS = "english_words.txt.gz", "chinese_pairs.txt.gz"
_WORD = re.compile(r"[a-z]{4,}")
_HAN_RUN = re.compile(f"[{HAN}]{{2,}}")
_PAIR_SHIFT = np.uint64(32)


@cache
def ordinary_words() -> Hashes:
    """Return the hashes of the words of ordinary English text, sorted; short ones in part."""
    words = {*_read(WORDS).split(), *COMMON_WORDS, *FUNCTION_WORDS}
    return np.sort(hash_words(sorted(words)))


def is_among(keys: Hashes, known: Hashes) -> Flags:
    """Return which keys are among those known, which are sorted."""
    at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    among: Flags = known[at] == keys
    return among


@cache
def ordinary_pairs() -> Hashes:
    """Return the pairs of neighbouring Chinese characters of ordinary text, sorted."""
    codes = np.frombuffer(_read(PAIRS).replace("\n", "").encode("utf-32-le"), np.dtype("<u4"))
    return np.sort(pair_keys(codes[0::2], codes[1::2]))


def pair_keys(first: Codes, second: Codes) -> Hashes:
    """Return a number for each pair of characters."""
    return first.astype(np.uint64) << _PAIR_SHIFT | second.astype(np.uint64)


def count_words(texts: Iterable[str]) -> Counter[str]:
    """Count the texts that have each word of four letters or more, in lower case."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(set(_WORD.findall(text.lower())))
    return counts


def count_pairs(texts: Iterable[str]) -> Counter[str]:
    """Count the texts that have each pair of neighbouring Chinese characters."""
    counts: Counter[str] = Counter()
    for text in texts:
        runs = _HAN_RUN.findall(simplify(text))
        counts.update({run[k : k + 2] for run in runs for k in range(len(run) - 1)})
    return counts


def _read(name: str) -> str:
    return gzip.decompress((files(__package__) / name).read_bytes()).decode()
