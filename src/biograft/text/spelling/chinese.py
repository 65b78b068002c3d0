"""Chinese names with a wrong or missing character, in compiled code.

Chinese has no blanks, so that there are no unknown words. An error shows in pairs of neighbouring
characters that neither the names nor ordinary text have: two pairs with a wrong character, one
where a character is missing. Only there a name of four characters or more may
differ from the text.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from biograft.compute import njit
from biograft.text.names_index import NameArrays, TokensRead, Trie, child_by, collect, has_rows
from biograft.text.spelling.corrections import ordinary_pairs, pair_keys, record
from biograft.text.tokens import Codes, Flags, Hashes, Ints, han_codes
from biograft.text.vocabulary import Int32s

MIN_CHARACTERS, _MIN_OUTER = 4, 6
"""The shortest name that may have an error, and one in its first or last character."""
_MAX_CHARACTERS = 24
_BITS = np.uint64(23)
"""Pairs are looked up in a table of so many bits: a few unknown ones are taken for known."""
_MIX, _TOP = np.uint64(0xD6E8FEB86659FD93), np.uint64(64) - _BITS


class HanCorrector:
    """Finds Chinese names with one wrong or missing character."""

    def __init__(self, names: NameArrays) -> None:
        self._names = names

    def find(self, read: TokensRead) -> Ints | None:
        """Return the names with an error: (5, matches), None if there are none.

        The rows are node, first and last token, edits, and the token with the error.
        """
        tokens = read.tokens
        codes = han_codes(tokens.letters, np.diff(tokens.ends, prepend=0), tokens.ends)
        if np.count_nonzero(codes) < MIN_CHARACTERS - 1:
            return None
        beside = np.zeros(len(codes) + 1, np.bool_)  # whether a token and the one before are a pair
        touching = (codes[:-1] > 0) & (codes[1:] > 0) & (tokens.last[:-1] == tokens.first[1:])
        beside[1:-1] = touching
        new = beside.copy()
        new[1:-1] &= ~self._known[_slots(pair_keys(codes[:-1], codes[1:]))]
        gaps = np.flatnonzero(new)
        if not len(gaps):
            return None
        is_wrong = (new[:-1] | ~beside[:-1]) & (new[1:] | ~beside[1:]) & (new[:-1] | new[1:])
        wrong = np.flatnonzero(is_wrong & (codes > 0))
        size, trie = 4 * len(gaps) + 16, self._names.trie
        found = collect(_walk, 5, size, read.words, codes > 0, wrong, gaps, trie, *self._by_token)
        return found if found.shape[1] else None

    @cached_property
    def _codes(self) -> Codes:
        """The Chinese character of each form, 0 of other forms."""
        names = self._names
        of_words = han_codes(names.letters, np.diff(names.word_ends), names.word_ends[1:])
        codes = np.zeros(int(names.tokens.max(initial=0)) + 1, np.uint32)
        used = np.flatnonzero((of_words > 0) & (names.forms >= 0) & (names.forms < len(codes)))
        codes[names.forms[used]] = of_words[used]
        return codes

    @cached_property
    def _known(self) -> Flags:
        """The table of the pairs of ordinary text and of the names."""
        known = np.zeros(1 << int(_BITS), np.bool_)
        known[_slots(ordinary_pairs())] = True
        names, codes = self._names, self._codes
        n_children: Ints = np.diff(names.children.astype(np.int64)).astype(np.int64)
        parents = np.repeat(np.arange(len(names.tokens)), n_children)
        first = codes[names.tokens[parents]]  # of the nodes from 1 on
        second = codes[names.tokens[1:]]
        pairs = (parents > 0) & (first > 0) & (second > 0)
        known[_slots(pair_keys(first[pairs], second[pairs]))] = True
        return known

    @cached_property
    def _by_token(self) -> tuple[Ints, Ints]:
        """The nodes of each Chinese character in order, and where those of each token begin."""
        names, n_forms = self._names, len(self._names.forms)
        nodes = 1 + np.flatnonzero(self._codes[names.tokens[1:]])
        of_nodes = names.tokens[nodes].astype(np.int64)
        starts = np.zeros(n_forms + 1, np.int64)
        np.cumsum(np.bincount(of_nodes, minlength=n_forms), out=starts[1:])
        return nodes[np.argsort(of_nodes, kind="stable")], starts


def _slots(keys: Hashes) -> Ints:
    mixed = keys * _MIX
    slots: Ints = (((mixed ^ (mixed >> np.uint64(29))) * _MIX) >> _TOP).astype(np.int64)
    return slots


@njit(work=lambda words, is_han, wrong, gaps, *_: 200 * (len(wrong) + len(gaps)))
def _walk(
    words: Int32s,
    is_han: npt.NDArray[np.bool_],
    wrong: Ints,
    gaps: Ints,
    trie: Trie,
    nodes: Ints,
    node_starts: Ints,
    out: Ints,
) -> int:
    """Walk the trie around each place of a possible error; return the number of names found."""
    n, children = 0, trie[1]
    for kind in range(2):
        for p in wrong if kind == 0 else gaps:
            behind = p + 1 - kind  # the error is at p, or a character is missing before p
            for begin in range(p, max(p - _MAX_CHARACTERS, 0) - 1, -1):
                if begin < p and (not is_han[begin] or words[begin] < 0):
                    break
                node: Any = np.int64(0)
                for at in range(begin, p):
                    node = child_by(trie, node, np.int64(words[at]))
                    if not node:
                        break
                if begin < p and not node:
                    continue
                first, last = np.int64(children[node]), np.int64(children[node + 1])
                if p - begin + 1 >= _MIN_OUTER:  # the last character is wrong or missing
                    for child in range(first, last):
                        if has_rows(trie, child):
                            n = record(out, n, child, begin, behind - 1, 1, min(p, behind - 1))
                if first == last or behind >= len(words):
                    continue
                if not is_han[behind] or words[behind] < 0:
                    continue
                # the children of all children that have the next character
                low, high = np.int64(children[first]), np.int64(children[last])
                end = node_starts[words[behind] + 1]
                own = nodes[node_starts[words[behind]] : end]
                for k in range(np.searchsorted(own, low), len(own)):
                    if own[k] >= high:
                        break
                    n = _follow(own[k], begin, behind + 1, p, kind, words, is_han, trie, out, n)
    return n


@njit()
def _follow(
    node: Any,
    begin: int,
    at: int,
    p: int,
    kind: int,
    words: Int32s,
    is_han: npt.NDArray[np.bool_],
    trie: Trie,
    out: Ints,
    n: int,
) -> int:
    """Record the names that go on from a node with the text from a token on."""
    shortest = _MIN_OUTER if begin == p else MIN_CHARACTERS
    while True:
        if has_rows(trie, node) and at - begin + kind >= shortest:
            n = record(out, n, node, begin, at - 1, 1, min(p, at - 1))
        if at >= len(words) or not is_han[at] or words[at] < 0:
            return n
        node = child_by(trie, node, np.int64(words[at]))
        if not node:
            return n
        at += 1
