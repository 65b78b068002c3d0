"""Chinese names with a wrong, missing or doubled character, in compiled code.

Chinese has no blanks, so that there are no unknown words. An error shows in pairs of neighbouring
characters that neither the names nor ordinary text have: two pairs with a wrong character, one
where a character is missing. Only there a name may differ from the text. A wrong character has the
same sound as the right one or a similar shape; then one such pair is enough for a name of four
characters. A character of a side, a part of the body, a number or the like is never wrong for
another one, and no short name ends within an ordinary word.
"""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any

import numpy as np

from biograft.arrays import Flags, Int32s, Ints
from biograft.compute import njit
from biograft.kb.similar_characters import CONTRASTS, KINDS, is_contrast, similar_characters
from biograft.text.names_index import (
    NameArrays,
    TokensRead,
    Trie,
    child_by,
    collect,
    has_rows,
    node_before,
)
from biograft.text.spelling.corrections import (
    WORD_PAIRS,
    is_among,
    ordinary_pairs,
    pair_keys,
    read_data,
    record,
)
from biograft.text.tokens import Codes, Hashes, han_codes

MIN_CHARACTERS, MIN_OTHER, _MIN_OUTER, _SHORT = 4, 5, 6, 4
"""The shortest name that may lack a character, have one that is not similar, and lack the last;
the longest that is none where an outer character makes an ordinary word with the one outside."""
_FUNCTION = (
    "的了是在和与及或为而其此该对从由以于被把向将则即但非不无有可能会也都很更最因所些个伴行予作"
    "示见未已"
)
"""Characters that are words themselves, and no errors in a short name."""
_TAILS = "症病征性术"
"""Characters that may be missing at the end of a name."""
MIN_SIMILAR = 2
"""The shortest name that may have a character of the same sound or of similar shape."""
_MAX_CHARACTERS = 24
_BITS = np.uint64(23)
"""Pairs are looked up in a table of so many bits: a few unknown ones are taken for known."""
_MIX, _TOP = np.uint64(0xD6E8FEB86659FD93), np.uint64(64) - _BITS
_JOINED, _STRANGE_BEFORE, _STRANGE_BEHIND = 1, 2, 4
"""A character and the one before it are an ordinary word, or are never beside each other, and the
one before, or this one, belongs to no word on its other side either."""
_FUNCTION_CODES, _TAIL_CODES = (np.array([*map(ord, each)]) for each in (_FUNCTION, _TAILS))


@cache
def ordinary_word_pairs() -> Hashes:
    """Return the ordinary words of two characters, as pairs, sorted."""
    lines = read_data(WORD_PAIRS).splitlines()
    letters = "".join(line[0] + second for line in lines for second in line[1:])
    codes = np.frombuffer(letters.encode("utf-32-le"), np.dtype("<u4"))
    return np.sort(pair_keys(codes[0::2], codes[1::2]))


class HanCorrector:
    """Finds Chinese names with one wrong, missing or doubled character."""

    def __init__(self, names: NameArrays) -> None:
        self._names = names

    def find(self, read: TokensRead) -> Ints | None:
        """Return the names with an error: (5, matches), None if there are none.

        The rows are node, first and last token, edits, and the token with the error.
        """
        tokens = read.tokens
        codes = han_codes(tokens.letters, np.diff(tokens.ends, prepend=0), tokens.ends)
        if np.count_nonzero(codes) < MIN_SIMILAR:
            return None
        beside = np.zeros(len(codes) + 1, np.bool_)  # whether a token and the one before are a pair
        touching = (codes[:-1] > 0) & (codes[1:] > 0) & (tokens.last[:-1] == tokens.first[1:])
        beside[1:-1] = touching
        new = beside.copy()
        new[1:-1] &= ~self._known[_slots(pair_keys(codes[:-1], codes[1:]))]
        new[1:-1] |= touching & (codes[:-1] == codes[1:])
        gaps = np.flatnonzero(new)
        if not len(gaps):
            return None
        near = np.unique((gaps[:, None] + np.arange(-_SHORT, _SHORT + 2)).clip(1, len(codes) - 1))
        joined = np.zeros_like(beside)
        pair = codes[near - 1], codes[near]
        joined[near] = beside[near] & is_among(pair_keys(*pair), ordinary_word_pairs())
        is_function = np.append(np.isin(codes, _FUNCTION_CODES), True)
        alone = np.append(True, new[1:-1] | ~beside[1:-1]) | np.roll(is_function, 1)[:-1]
        borders = np.where(joined, _JOINED, 0)
        borders[1:-1] |= np.where(new[1:-1] & alone[:-1], _STRANGE_BEFORE, 0)
        alone = np.append(new[1:-1] | ~beside[1:-1], True) | is_function[1:]
        borders[1:-1] |= np.where(new[1:-1] & alone[1:], _STRANGE_BEHIND, 0)
        borders[near] *= ~np.isin(pair, _FUNCTION_CODES).any(0)  # 无头痛 has the word 无头
        is_wrong = (new[:-1] | ~beside[:-1]) & (new[1:] | ~beside[1:])
        places = np.flatnonzero((new[:-1] | new[1:]) & (codes > 0))
        is_wrong[places] &= ~np.isin(codes[places], _FUNCTION_CODES)
        size, trie = 4 * len(gaps) + 16, self._names.trie
        similar = self._similar
        rows, own = np.full(len(codes), -1), codes[places]
        at = np.searchsorted(similar[0], own).clip(max=len(similar[0]) - 1)
        rows[places] = np.where(similar[0][at] == own, at, -1)
        found = collect(
            *(_walk, 5, size, read.words, codes, rows, borders, is_wrong, places, gaps, trie),
            *(*similar[1:], *self._by_token, self._codes, self._names.tokens, _groups()),
        )
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
    def _similar(self) -> tuple[Codes, Ints, Ints]:
        """Characters in order, where the forms that are similar to each begin, and these."""
        codes, similar = self._codes, similar_characters()
        forms = {chr(codes[form]): form for form in np.flatnonzero(codes).tolist()}
        starts, near = [0], []
        for char in sorted(similar):
            own = [forms[each] for each in "".join(similar[char]) if each in forms]
            near += [form for form in own if not is_contrast(char, chr(codes[form]))]
            starts.append(len(near))
        chars = np.array([ord(char) for char in sorted(similar)], np.uint32)
        return chars, np.array(starts, np.int64), np.array(near, np.int64)

    @cached_property
    def _known(self) -> Flags:
        """The table of the pairs of ordinary text and of the names."""
        known = np.zeros(1 << int(_BITS), np.bool_)
        known[_slots(ordinary_pairs())] = True
        known[_slots(ordinary_word_pairs())] = True
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


@cache
def _groups() -> tuple[Codes, Ints, int]:
    """Return characters in order, the group that each belongs to, and the number of contrasts."""
    of = {char: n for n, group in enumerate((*CONTRASTS, *KINDS)) for char in group}
    chars = sorted(of)
    groups = np.array([of[char] for char in chars], np.int64)
    return np.array([ord(char) for char in chars], np.uint32), groups, len(CONTRASTS)


@njit()
def _group(code: Any, groups: Any) -> Any:
    at = np.searchsorted(groups[0], code)
    if at < len(groups[0]) and groups[0][at] == code:
        return groups[1][at]
    return -1


@njit(
    work=lambda words, codes, rows, borders, is_wrong, places, gaps, *_: (
        200 * (len(places) + len(gaps))
    )
)
def _walk(
    words: Int32s,
    codes: Codes,
    rows: Ints,
    borders: Ints,
    is_wrong: Flags,
    places: Ints,
    gaps: Ints,
    trie: Trie,
    similar_starts: Ints,
    similar: Ints,
    nodes: Ints,
    node_starts: Ints,
    of_forms: Codes,
    tokens: Int32s,
    groups: Any,
    out: Ints,
) -> int:
    """Walk the trie around each place of a possible error; return the number of names found."""
    n, children = 0, trie[1]
    for kind in range(2):
        for p in places if kind == 0 else gaps:
            behind = p + 1 - kind  # the error is at p, or a character is missing before p
            for begin in range(p, max(p - _MAX_CHARACTERS, 0) - 1, -1):
                if begin < p and words[begin] < 0:
                    break
                node: Any = node_before(trie, words, begin, p)
                if node < 0:
                    continue
                if kind == 0 and rows[p] >= 0:
                    shortest = MIN_SIMILAR if is_wrong[p] else MIN_CHARACTERS
                    for k in range(similar_starts[rows[p]], similar_starts[rows[p] + 1]):
                        child = child_by(trie, node, similar[k])
                        if child:
                            n = _follow(
                                child, begin, p + 1, p, shortest, words, borders, trie, out, n
                            )
                if kind == 1 and begin < p - 1 and codes[p - 1] == codes[p]:  # doubled
                    if behind + 1 < len(words) and words[p + 1] >= 0:
                        child = child_by(trie, node, np.int64(words[p + 1]))
                        if child:
                            n = _follow(child, begin, p + 2, p, 0, words, borders, trie, out, n)
                    continue
                if kind == 0 and not is_wrong[p]:
                    continue
                first, last = np.int64(children[node]), np.int64(children[node + 1])
                if kind == 1 and p - begin + 1 >= _MIN_OUTER:  # the last character is missing
                    for child in range(first, last):
                        if has_rows(trie, child) and (of_forms[tokens[child]] == _TAIL_CODES).any():
                            n = record(out, n, child, begin, p - 1, 1, p - 1)
                if first == last or behind >= len(words) or begin == behind:
                    continue  # a first character is never missing
                if not codes[behind] or words[behind] < 0:
                    continue
                # the children of all children that have the next character
                low, high = np.int64(children[first]), np.int64(children[last])
                end = node_starts[words[behind] + 1]
                own = nodes[node_starts[words[behind]] : end]
                for k in range(np.searchsorted(own, low), len(own)):
                    if own[k] >= high:
                        break
                    parent = np.searchsorted(children[first : last + 1], own[k], side="right")
                    code = of_forms[tokens[first + parent - 1]]
                    if _may_be(code, codes[p] if kind == 0 else 0, groups):
                        shortest = _MIN_OUTER if begin == p else MIN_OTHER - kind
                        after, shortest = behind + 1, shortest - kind
                        n = _follow(own[k], begin, after, p, shortest, words, borders, trie, out, n)
    return n


@njit()
def _may_be(code: Any, written: Any, groups: Any) -> Any:
    """Whether a character may be missing (0 is written), or one that is not similar be written."""
    one, other = _group(code, groups), _group(written, groups)
    if not code or 0 <= one < groups[2] or 0 <= other < groups[2]:
        return False
    return one < 0 or other < 0


@njit()
def _follow(
    node: Any,
    begin: int,
    at: int,
    p: int,
    shortest: int,
    words: Int32s,
    borders: Ints,
    trie: Trie,
    out: Ints,
    n: int,
) -> int:
    """Record the names that go on from a node with the text from a token on."""
    while True:
        # a short name whose outer character makes a word with the one outside is none: 其促进; nor
        # is one beside a second place that ordinary text does not have: 佐布症
        is_whole = at - begin > _SHORT or not (
            borders[begin] & _JOINED
            or borders[at] & _JOINED
            or (p == at - 1 and borders[begin] & _STRANGE_BEFORE)
            or (p == begin and borders[at] & _STRANGE_BEHIND)
        )
        if has_rows(trie, node) and at - begin >= shortest and is_whole:
            n = record(out, n, node, begin, at - 1, 1, min(p, at - 1))
        if at >= len(words) or words[at] < 0:
            return n
        node = child_by(trie, node, np.int64(words[at]))
        if not node:
            return n
        at += 1
