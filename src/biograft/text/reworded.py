"""Re-worded names in text: the words of a name in another order, or some of them exchanged.

*Abnormality of the kidney* is found as *renal anomalies*, *atrial septal defect* as *defect of the
atrial septum*. A name is a bag of words: the sum of 64-bit hashes of its words, without small ones
such as *of*. Words that replace each other in names of one concept (*kidney*, *renal*) form a class
and share a hash, so that a bag is looked up once, whichever of them a text has. The classes are
learned from the names alone.

1. The keys of all names come from the trie of the names index, level by level: the key of a node is
   that of its parent plus the hash of its token.
2. In a text, the sums over runs of up to seven words of a clause are looked up in a hash table.
   A run may leave out conjuncts: *branchial, otic and renal anomalies* has *branchial anomalies*.
3. What is found is compared with the names of its key: the one that shares most words is meant.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import cache, cached_property
from importlib.resources import files
from itertools import pairwise, takewhile
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from biograft.arrays import Array, Flags, Int32s, Ints, Uint64s
from biograft.compute import njit
from biograft.text.chinese_words import at_borders
from biograft.text.names_index import NamesIndex, batches_of, collect
from biograft.text.tokens import Tokens, hash_slots, hash_words, join_texts, positions_in, slot_of
from biograft.text.vocabulary import Vocabulary, find_word, singular

Int8s = npt.NDArray[np.int8]
Pairs = dict[tuple[int, int], int]

_SMALL = tuple(
    "of the in with by to and or a an due for from on at as some both his her their its 的".split()
)
"""Words that do not count."""
_ABNORMALITIES = tuple(
    "abnormality anomaly malformation defect disorder disease dysfunction problem finding "
    "manifestation involvement lesion deformity sign symptom impairment deficit damage disturbance "
    "abnormal anomalous malformed".split()
)
"""Words for something that is not normal, without saying what."""
_HYPHENS = tuple(map(ord, "-\u2010\u2011"))
_BREAKS = tuple(
    "is are was were be been being has have had this that these those which who whose not no "
    "without than then but also did does do may can 不 无 未 没 是 有".split()
)
"""Words that a name in other words does not go across."""
_CONJUNCTIONS = ("and", "or", "&", "/", "和", "或", "及", "与")
_COMMAS = (",", "、")
_MAX_WORDS = 7
"""Longer names are not looked for."""
_MAX_SKIPPED = 8
"""Words of conjuncts that a run may leave out."""
_MAX_PART = 3
"""Words of a conjunct, and of what conjuncts share."""
_MIN_LAST = 0.8
"""Least fraction of its names that a word that looks like an adjective is the last of, if a run may
end in it."""
_ADJECTIVE = re.compile(r"...(?:al|ic|ous|ed|ent|ant|ar|ary|ive|oid|ing)$")
_ENDINGS = tuple(
    tuple(pair.split("/"))
    for pair in "ion/ive osis/otic emia/emic tonia/tonic taxia/taxic plegia/plegic penia/penic "
    "mania/manic clonus/clonic epsy/eptic olism/olic ism/ian itis/itic phy/phic thy/thic gy/gic "
    "aly/alic".split()
)
"""Ends of nouns, and of the adjectives that derive from them: *hypotension*, *hypotensive*."""
_MAX_CHOICES = 12
"""A slot that more words of a concept can fill does not make them synonyms."""
_MAX_CONCEPTS = 200_000
"""Concepts to learn from, evenly spaced if there are more."""
MAX_NAMES = 3_000_000
"""More names would take long to prepare, and much memory."""
_MIN_CONCEPTS, _MIN_RATIO, _MIN_HIGHER_RATIO = 3, 0.15, 0.5
"""Least number of concepts in which two words replace each other, and least fractions of the
concepts with the one word, and with the other."""
_MIN_SUBSTITUTE, _MAX_SUBSTITUTES = 0.05, 4
"""Least such fraction for a word beside one of ``_ABNORMALITIES``, and number of its substitutes:
*ocular anomaly* is an *abnormality of the eye*."""
_MAX_JOINED = 1 << 16
"""Pairs of words with a hyphen between them that are remembered."""
_SAME_STEM, _MIN_STEM, _MIN_STEM_SHORT = 0.55, 5, 4
"""Fraction of its letters, and number of them, that a word shares with one that it derives from."""
_MIN_ROTATED = 2
"""Chinese names with more characters may stand in another order."""
_MIN_WORD, _MIN_PLURAL = 3, 3
"""Words with more letters may be plurals: *ribs*."""
_ORDER, _EXCHANGED = 0.95, 0.3
"""The similarity of the same words in another order; what it loses if all are exchanged."""


class RewordedMatch(NamedTuple):
    """A span of text that re-words a name, with the row of the name in the store's table."""

    start: int
    end: int
    text: str
    name_row: int
    similarity: float
    """Below 1: the more words are others, the lower."""
    coordinated: bool
    """Whether words between are left out: *branchial, otic and renal anomalies*."""


class RewordedNames:
    """Finds names of an index whose words stand in another order, or are replaced.

    Args:
        names: Index of the names.
        concepts: Concept of each row of the store's table of names.
    """

    def __init__(self, names: NamesIndex, concepts: Sequence[int] | Array) -> None:
        self._names, self._concepts = names, np.asarray(concepts)
        self._joined: dict[tuple[int, int], int] = {}
        self._is_preferred = np.ones(len(self._concepts), np.bool_)  # the first of each concept
        self._is_preferred[1:] = self._concepts[1:] != self._concepts[:-1]

    def find(self, text: str) -> list[RewordedMatch]:
        """Find the re-worded names in a text, also overlapping ones, from left to right."""
        return self.find_many([text])[0]

    def find_many(self, texts: Sequence[str]) -> list[list[RewordedMatch]]:
        """Find the re-worded names in each of several texts."""
        found: list[list[RewordedMatch]] = []
        for _, batch in batches_of(texts):
            found += self._find_in(batch)
        return found

    def _find_in(self, texts: Sequence[str]) -> list[list[RewordedMatch]]:
        bags, (tokens, words, stems) = self._bags, self._names.read(texts)
        forms, last = np.where(words >= 0, words, stems), tokens.last.copy()
        within = self._join_parted(texts, tokens, forms, last)
        hashes = bags.hashes[forms]
        unknown = np.flatnonzero(hashes == 0)
        other = positions_in(tokens.hashes[unknown], bags.others)
        hashes[unknown[other >= 0]] = bags.other_hashes[other[other >= 0]]
        at, gaps = _content(tokens, within)
        read = _Words(forms[at], hashes[at], gaps)
        runs = collect(
            find_runs, 5, len(at) + 16, *read, bags.slots, *bags.substitutes, bags.abnormal
        )
        runs = runs[:, at_borders(tokens, at[runs[0]], at[runs[1]])]
        found: list[list[RewordedMatch]] = [[] for _ in texts]
        keys = bags.slots[runs[4]]
        runs[4] = np.arange(len(keys))
        bounds = [np.searchsorted(bags.keys, keys, side).tolist() for side in ("left", "right")]
        starts, ends = tokens.first[at].tolist(), last[at].tolist()
        words_read = _Words(*(column.tolist() for column in read))
        derived = positions_in(tokens.hashes, bags.derived)
        firsts = np.cumsum([0, *(len(text) + 1 for text in texts)])
        for token in np.flatnonzero(derived >= 0).tolist():
            row = int(np.searchsorted(firsts, tokens.first[token], "right")) - 1
            start, end = (int(at[token] - firsts[row]) for at in (tokens.first, tokens.last))
            node, similarity = bags.derived_from[derived[token]]
            text = texts[row][start:end]
            for name in self._names.rows_of(node, text)[:1]:
                match = RewordedMatch(start, end, text, name, similarity, coordinated=False)
                found[row].append(match)
        offset, row = 0, 0
        for first, last, skip, resume, run in runs[:, np.lexsort(runs[:2][::-1])].T.tolist():
            start, end = starts[first], ends[last]
            while start > offset + len(texts[row]):
                offset, row = offset + len(texts[row]) + 1, row + 1
            own = [*range(first, skip), *range(resume, last + 1)]
            text = texts[row][start - offset : end - offset]
            before = text[starts[skip - 1] - start : ends[skip - 1] - start]
            is_whole = skip < resume and self._is_whole(skip, before, words_read)
            if not is_whole and not self._is_cut(own, words_read):
                nodes = bags.nodes[bounds[0][run] : bounds[1][run]].tolist()
                best = self._best(nodes, [words_read.forms[word] for word in own], text)
                if best is not None:
                    span = (start - offset, end - offset, text)
                    found[row].append(RewordedMatch(*span, *best, skip < resume))
        return found

    def _join_parted(
        self, texts: Sequence[str], tokens: Tokens, forms: Int32s, last: Ints
    ) -> Flags:
        """Read *pre-auricular* as one word, if names have it so; return the tokens within words.

        Args:
            texts: Texts.
            tokens: Their tokens.
            forms: Form of each token, which is changed; so are the ends.
            last: End of each token in the texts.
        """
        arrays, codes = self._names.arrays, join_texts(texts)
        within = np.zeros(len(forms), np.bool_)
        is_near = tokens.first[1:] - tokens.last[:-1] == 1
        for n in np.flatnonzero(is_near & np.isin(codes[tokens.last[:-1]], _HYPHENS)).tolist():
            parts = int(tokens.hashes[n]), int(tokens.hashes[n + 1])
            if (form := self._joined.get(parts)) is None:
                if len(self._joined) > _MAX_JOINED:
                    self._joined.clear()
                start = int(tokens.ends[n - 1]) if n else 0
                word = find_word(*arrays[:3], tokens.letters, start, int(tokens.ends[n + 1]))
                form = self._joined[parts] = int(arrays.forms[word]) if word >= 0 else -1
            if form >= 0:
                forms[n], last[n], within[n + 1] = form, last[n + 1], True
        return within

    def _is_whole(self, skip: int, before: str, read: _Words) -> bool:
        """Whether a conjunct is complete, as *anomalies* and *sinuses* before *and a flat face*.

        Args:
            skip: The first word that is left out.
            before: The word before it.
            read: The words.
        """
        if read.gaps[skip] < _AND:
            return False
        is_noun = self._bags.may_end[read.forms[skip - 1]]
        is_abnormal = is_noun and read.hashes[skip - 1] == int(self._bags.abnormal)
        return is_abnormal or singular(before.lower()) != before.lower()

    def _is_cut(self, own: Sequence[int], read: _Words) -> bool:
        """Whether a run ends within a phrase, as *changes of renal* before *function*."""
        first, last = own[0], own[-1]
        if self._bags.is_short[read.forms[first]] or not self._bags.may_end[read.forms[last]]:
            return True
        if last + 1 == len(read.gaps) or read.gaps[last + 1] != _PLAIN or not read.hashes[last + 1]:
            return False
        head_first = read.hashes[first] == int(self._bags.abnormal)
        return head_first or any(read.gaps[word] != _PLAIN for word in own[1:])

    def _best(
        self, nodes: Sequence[int], forms: Sequence[int], text: str
    ) -> tuple[int, float] | None:
        """Return the first row of the name that shares most words, and its similarity.

        If other words are exchanged, a preferred name comes before synonyms of other concepts.

        Args:
            nodes: Names whose words have the classes of those in the text.
            forms: Words of the text.
            text: The text.
        """
        bags = self._bags
        best: tuple[bool, bool, float, int] | None = None
        for node in nodes:
            words = [word for word in bags.words_of(node) if bags.hashes[word]]
            if any(map(bags.is_han.__getitem__, words)) and not _is_rotated(words, forms):
                continue
            others = list(forms)
            for word in words:
                if word in others:
                    others.remove(word)
            shared = len(forms) - len(others)
            similarity = _ORDER - _EXCHANGED * (1 - shared / len(words))
            for row in self._names.rows_of(node, text):
                own = shared == len(words), bool(self._is_preferred[row]), similarity, -row
                best = max(best or own, own)
        return best and (-best[3], best[2])

    @cached_property
    def _bags(self) -> _Bags:
        return _Bags(self._names, self._concepts)


def _is_rotated(words: Sequence[int], forms: Sequence[int]) -> bool:
    """Whether Chinese characters are those of a name, or its end stands before its beginning."""
    doubled, n = [*words, *words], len(words)
    return any(doubled[k : k + n] == list(forms) for k in range(n if n > _MIN_ROTATED else 1))


# ---- texts

_PLAIN, _SMALLER, _OF, _AND, _COMMA, _BROKEN = range(6)
"""Codes for the text between two words: nothing, small words, *of*, a conjunction, a
comma, an end."""
_SMALL_HASHES, _OF_HASHES = hash_words(_SMALL), hash_words(["of"])
_BREAK_HASHES = hash_words(_BREAKS)
_AND_HASHES, _COMMA_HASHES = hash_words(_CONJUNCTIONS), hash_words(_COMMAS)


class _Words(NamedTuple):
    """The words of texts that count, in columns."""

    forms: Int32s
    """-1 of those that no name has."""
    hashes: Uint64s
    """Hash of the class of each; 0: no name has it."""
    gaps: Int8s
    """Code of the text before each word."""


def _content(tokens: Tokens, within: Flags) -> tuple[Ints, Int8s]:
    """Return which tokens are words that count, and what stands before each."""
    starts = np.concatenate([np.zeros(1, np.int64), tokens.ends[:-1]])
    is_mark = tokens.ends == starts
    one = np.flatnonzero(tokens.ends - starts == 1)
    letters = tokens.letters[starts[one]]
    marks = np.unique(letters)
    is_mark[one] = np.isin(letters, [code for code in marks.tolist() if not chr(code).isalnum()])
    small = np.isin(tokens.hashes, _SMALL_HASHES)
    kind = np.where(is_mark, _BROKEN, np.where(small, _SMALLER, _PLAIN))
    kind[np.isin(tokens.hashes, _BREAK_HASHES)] = _BROKEN
    for hashes, value in ((_OF_HASHES, _OF), (_AND_HASHES, _AND), (_COMMA_HASHES, _COMMA)):
        kind[np.isin(tokens.hashes, hashes)] = value
    at = np.flatnonzero((kind == _PLAIN) & ~within)
    gaps = np.full(len(at), _PLAIN)
    for value in (_SMALLER, _OF, _COMMA, _AND, _BROKEN):  # the last counts
        n = np.cumsum(kind == value)
        gaps[1:][n[at[1:]] > n[at[:-1]]] = value
    return at, gaps.astype(np.int8)


@njit()
def _has(hashes: Uint64s, first: Any, end: Any, value: Any) -> Any:
    """Whether a range of words has one of a class."""
    n = first
    while n < end and hashes[n] != value:
        n += 1
    return n < end


@njit(inline="always")
def _put(out: Ints, n: Any, slot: Any, begin: Any, last: Any, skip: Any, resume: Any) -> Any:
    """Add a run, if its key is that of a name; return the number of runs."""
    if slot < 0:
        return n
    if n < out.shape[1]:
        out[0, n], out[1, n], out[2, n], out[3, n], out[4, n] = begin, last, skip, resume, slot
    return n + 1


@njit(work=lambda forms, *_: 20 * len(forms))
def find_runs(
    forms: Int32s,
    hashes: Uint64s,
    gaps: Int8s,
    slots: Uint64s,
    starts: Ints,
    added: Uint64s,
    abnormal: Any,
    out: Ints,
) -> int:
    """Find the runs of words that are a bag of a name; return their number.

    Args:
        forms: Form of each word, -1: unknown.
        hashes: Hash of the class of each word; 0: no name has it.
        gaps: What stands before each word.
        slots: Hash table of the keys of names.
        starts: Where the substitutes of each form begin.
        added: What each substitute adds to a key.
        abnormal: Hash of the class of abnormalities.
        out: Gets first and last word, the words that are left out (first, end) and the slot.
    """
    n, size = 0, len(hashes)
    for begin in range(size):
        if not hashes[begin]:
            continue
        key, at = hashes[begin], begin + 1
        limit = min(size, begin + _MAX_WORDS)
        while at < limit and hashes[at] and gaps[at] < _AND:
            key += hashes[at]
            n = _put(out, n, slot_of(slots, key), begin, at, at + 1, at + 1)
            if at == begin + 1 and (hashes[begin] == abnormal) != (hashes[at] == abnormal):
                form = forms[begin] if hashes[at] == abnormal else forms[at]
                for k in range(starts[form], starts[form + 1]):
                    slot = slot_of(slots, key + added[k])
                    n = _put(out, n, slot, begin, at, at + 1, at + 1)
            at += 1
        # what is left out begins at *skip* and ends before *resume*
        key, skip, limit = hashes[begin], begin + 1, min(size, begin + _MAX_WORDS + _MAX_SKIPPED)
        while skip < min(limit, begin + _MAX_PART + 1) and gaps[skip] != _BROKEN:
            joined, seen_and, part = gaps[skip] >= _AND, gaps[skip] == _AND, 0
            if not joined and gaps[skip] != _OF:
                # *fistulas or* before cysts
                resume = skip + 1
                while resume < min(limit, skip + _MAX_PART) and gaps[resume] == _PLAIN:
                    resume += 1
                if resume < limit and gaps[resume] == _AND and hashes[resume]:
                    more = key + hashes[resume]
                    n = _put(out, n, slot_of(slots, more), begin, resume, skip, resume)
                if not hashes[skip]:
                    break
                key += hashes[skip]
                skip += 1
                continue
            resume = skip + 1
            while resume < limit and gaps[resume] != _BROKEN:
                gap = gaps[resume]
                part = 0 if gap >= _AND else part + 1
                if joined and seen_and and gap >= _AND:
                    break
                seen_and = seen_and or gap == _AND
                if part >= _MAX_PART or (joined and _SMALLER <= gap <= _OF):
                    break
                # *, otic and renal* before a head; or *lower limbs and* behind one
                if (gap == _PLAIN and seen_and) if joined else (gap >= _AND):
                    more, at = key, resume
                    while at < min(limit, resume + _MAX_PART) and hashes[at]:
                        if at > resume and gaps[at] != _PLAIN:
                            break
                        if _has(hashes, skip, resume, hashes[at]):
                            break
                        more += hashes[at]
                        n = _put(out, n, slot_of(slots, more), begin, at, skip, resume)
                        at += 1
                resume += 1
            if joined or not hashes[skip]:
                break
            key += hashes[skip]
            skip += 1
    return n


# ---- names


class _Bags:
    """The keys of the names of an index, and the classes of their words."""

    def __init__(self, names: NamesIndex, concepts: Array) -> None:
        arrays = names.arrays
        self._tokens = arrays.tokens
        children = arrays.children.astype(np.int64)
        self._parents = np.zeros(len(arrays.tokens), np.int32)
        self._parents[1:] = np.repeat(np.arange(len(arrays.tokens)), children[1:] - children[:-1])
        # the last is that of unknown words, whose form is -1
        texts = [*_texts_of_forms(Vocabulary(*arrays[:3]), arrays.forms), ""]
        self.is_han = np.array([bool(text) and text[0] >= "\u3400" for text in texts], np.bool_)
        is_comma, is_of = np.isin(texts, _COMMAS), np.isin(texts, ["of"])
        small = {*_SMALL} - {"a"}  # in a name it is a letter, as in *type A*
        counts = np.array([text[:1].isalnum() and text not in small for text in texts], np.bool_)
        own = np.where(counts, hash_words(texts), np.uint64(0))
        texts = [text if known else "" for text, known in zip(texts, counts, strict=True)]
        keys, n_words = self._sum(own, children)
        row_starts = arrays.row_starts.astype(np.int64)
        at = np.repeat(np.arange(len(keys)), row_starts[1:] - row_starts[:-1])
        chosen = (n_words[at] >= 2) & (n_words[at] <= _MAX_WORDS)
        pairs, n_concepts = self._learn(
            concepts[arrays.rows[chosen]], at[chosen], keys, own, len(texts)
        )
        self.hashes = own[_classes(pairs, n_concepts, texts)]
        """Hash of the class of each form; 0: it does not count."""
        self.others, self.other_hashes = self._other_words(texts)
        """Hashes of words that no name has, ascending, and those of their classes."""
        self.substitutes = self._substitutes(pairs, n_concepts, texts)
        self.abnormal = np.max(self.hashes[np.isin(texts, _ABNORMALITIES)], initial=np.uint64(0))
        """Hash of the class of ``_ABNORMALITIES``; 0: no name has any."""
        keys, _ = self._sum(self.hashes, children)
        nodes = np.unique(at[chosen])
        order = np.argsort(keys[nodes], kind="stable")
        self.nodes = nodes[order]
        """Nodes of names with two words or more, by their keys."""
        self.keys = keys[self.nodes]
        self.slots = hash_slots(self.keys)
        own_rows = row_starts[1:] > row_starts[:-1]
        single = {texts[node - 1]: node for node in range(1, int(children[1])) if own_rows[node]}
        derived = self._derived(single, dict(zip(texts, self.hashes.tolist(), strict=True)))
        hashes = hash_words(list(derived))
        order = np.argsort(hashes)
        self.derived, found = hashes[order], list(derived.values())
        """Hashes of words that derive from a name, ascending."""
        self.derived_from = [found[n] for n in order.tolist()]
        """The node of the name that each derives from, and their similarity."""
        in_order = ~self._under(is_comma, children)[at]
        before_of = self._parents[is_of[self._tokens]]
        ends = self._tokens[np.concatenate([at[in_order], before_of])]
        last = np.bincount(ends, minlength=len(texts))
        is_adjective = np.array([bool(_ADJECTIVE.search(text)) for text in texts])
        self.is_short = (
            np.array([len(text) == 1 or text.isdigit() for text in texts]) & ~self.is_han
        )
        self.may_end = ~is_adjective | (last >= _MIN_LAST * n_concepts)
        """Whether a run may end in each form."""

    def _other_words(self, texts: Sequence[str]) -> tuple[Uint64s, Uint64s]:
        known = dict(zip(texts, self.hashes.tolist(), strict=True))
        found = {"": 0}
        for group in _same_words():
            own = next((known[word] for word in group if word in known), 0)
            plurals = (f"{word[:-1]}ies" if word[-1] == "y" else f"{word}s" for word in group)
            found |= dict.fromkeys([*group, *plurals], own)
        hashes = hash_words(list(found))
        order = np.argsort(hashes)
        return hashes[order], np.array(list(found.values()), np.uint64)[order]

    def _derived(
        self, single: dict[str, int], known: dict[str, int]
    ) -> dict[str, tuple[int, float]]:
        """Return the words that derive from names of one word, or of a body part and a disease.

        Args:
            single: Node of each name of one word.
            known: Hash of the class of each word.
        """
        found = {"": (0, 0.0)}
        for name, node in single.items():
            for ending, other in _ENDINGS:
                if name.endswith(ending) and len(name) > len(ending) + 2:
                    word = name.removesuffix(ending) + other
                    found.setdefault(word, (node, _ORDER - _EXCHANGED / 2))
        for group in _same_words():
            part = next((known[word] for word in group if word in known), 0)
            key = (part + int(self.abnormal)) % (1 << 64)
            at = (
                int(positions_in(np.array([key], np.uint64), self.keys)[0])
                if len(self.keys)
                else -1
            )
            for root in (word[:-1] for word in group if at >= 0 and word[-1] == "-"):
                source = int(self.nodes[at]), _ORDER - _EXCHANGED
                words = (f"{root}{ending}" for ending in ("pathy", "pathies", "pathic"))
                found |= dict.fromkeys(words, source)
        return found

    def _substitutes(
        self, pairs: Pairs, n_concepts: Ints, texts: Sequence[str]
    ) -> tuple[Ints, Uint64s]:
        """Return where the substitutes of each form begin, and what each adds to a key."""
        found: defaultdict[int, list[tuple[float, int]]] = defaultdict(list)
        for pair, n in pairs.items():
            if n >= _MIN_CONCEPTS and _are_words(*(texts[word] for word in pair)):
                for word, other in (pair, pair[::-1]):
                    if n >= _MIN_SUBSTITUTE * n_concepts[word]:
                        found[word].append((-n / n_concepts[word], other))
        starts = np.zeros(len(texts) + 1, np.int64)
        added: list[int] = []
        for word in range(len(texts)):
            others = [int(self.hashes[other]) for _, other in sorted(found.get(word, ()))]
            own = dict.fromkeys((other - int(self.hashes[word])) % (1 << 64) for other in others)
            added += [key for key in own if key][:_MAX_SUBSTITUTES]
            starts[word + 1] = len(added)
        return starts, np.array(added, np.uint64)

    def words_of(self, node: int) -> list[int]:
        """Return the forms of a name."""
        words = []
        while node:
            words.append(int(self._tokens[node]))
            node = int(self._parents[node])
        return words[::-1]

    def _under(self, forms: Flags, children: Ints) -> Flags:
        """Return the nodes that one of some forms leads to."""
        keys, _ = self._sum(forms.astype(np.uint64), children)
        return keys > 0

    def _sum(self, hashes: Uint64s, children: Ints) -> tuple[Uint64s, Int8s]:
        """Return the key of each node and the number of its words, level by level."""
        keys, n_words = np.zeros(len(self._tokens), np.uint64), np.zeros(len(self._tokens), np.int8)
        first, end = 1, int(children[1])
        while first < end:
            forms, parents = self._tokens[first:end], self._parents[first:end]
            keys[first:end] = keys[parents] + hashes[forms]
            n_words[first:end] = np.minimum(n_words[parents] + (hashes[forms] > 0), 100)
            first, end = end, int(children[end])
        return keys, n_words

    def _learn(
        self, concepts: Ints, nodes: Ints, keys: Uint64s, hashes: Uint64s, n_forms: int
    ) -> tuple[Pairs, Ints]:
        """Count which words replace each other in names of a concept, and concepts of each word."""
        distinct = np.unique(concepts)
        if len(distinct) > _MAX_CONCEPTS:
            own = np.isin(concepts, distinct[:: -(-len(distinct) // _MAX_CONCEPTS)])
            concepts, nodes = concepts[own], nodes[own]
        none = np.zeros(0, np.int64)
        places = [(none, keys[:0], none)]  # concept, the other words of its name, word
        at, concept, key = nodes.astype(np.int64), concepts.astype(np.int64), keys[nodes]
        while len(at):
            forms = self._tokens[at].astype(np.int64)
            counts = hashes[forms] > 0
            places.append((concept[counts], (key - hashes[forms])[counts], forms[counts]))
            at = self._parents[at].astype(np.int64)
            kept = at > 0
            at, concept, key = at[kept], concept[kept], key[kept]
        concept, rest, word = (np.concatenate(column) for column in zip(*places, strict=True))
        uses = np.unique(concept * n_forms + word)
        n_concepts = np.bincount(uses % n_forms, minlength=n_forms)
        order = np.lexsort((word, rest, concept))
        concept, rest, word = concept[order], rest[order], word[order]
        kept = np.ones(len(word), np.bool_)
        kept[1:] = (np.diff(concept) != 0) | (rest[1:] != rest[:-1]) | (np.diff(word) != 0)
        concept, rest, word = concept[kept], rest[kept], word[kept]
        is_new = np.ones(len(word), np.bool_)
        is_new[1:] = (np.diff(concept) != 0) | (rest[1:] != rest[:-1])
        slot = np.cumsum(is_new)
        size = np.bincount(slot)[slot] if len(slot) else slot
        few = size < _MAX_CHOICES
        concept, slot, word = concept[few], slot[few], word[few]
        shown = [np.zeros((3, 0), np.int64)]
        for step in range(1, _MAX_CHOICES):
            same = np.flatnonzero(slot[step:] == slot[:-step])
            if not len(same):
                break
            shown.append(np.stack([concept[same], word[same], word[same + step]]))
        found = np.unique(np.concatenate(shown, axis=1), axis=1)[1:]
        pairs, n = np.unique(found, axis=1, return_counts=True)
        return dict(zip(map(tuple, pairs.T.tolist()), n.tolist(), strict=True)), n_concepts


def _texts_of_forms(vocabulary: Vocabulary, forms: Int32s) -> list[str]:
    """Return a text of each form, the shortest that has it."""
    letters = vocabulary.letters.tobytes().decode("utf-32-le", "surrogatepass")
    texts = [""] * (int(forms.max(initial=-1)) + 1)
    ends = vocabulary.word_ends.tolist()
    for word, form in enumerate(forms.tolist()):
        if form >= 0:
            text = letters[ends[word] : ends[word + 1]]
            if not texts[form] or len(text) < len(texts[form]):
                texts[form] = text
    return texts


def _classes(pairs: Pairs, n_concepts: Ints, texts: Sequence[str]) -> Ints:
    """Return the class of each form, the number of one of its words."""
    class_of = np.arange(len(texts))
    members: defaultdict[int, list[int]] = defaultdict(list)
    numbers = {text: n for n, text in enumerate(texts)}
    related = [
        (n, numbers[text[:-1]])
        for text, n in numbers.items()
        if len(text) > _MIN_PLURAL and text[-1] == "s" and text[:-1] in numbers
    ]
    related += [
        pair
        for pair, n in sorted(pairs.items(), key=lambda pair: (-pair[1], pair[0]))
        if _are_related(*pair, n, n_concepts, texts)
    ]
    for group in _same_words():
        related += pairwise(numbers[word] for word in group if word in numbers)
    for a, b in related:
        low, high = sorted((int(class_of[a]), int(class_of[b])))
        if low < high:
            joining = members.pop(high, [high])
            class_of[joining] = low
            members[low] = [*(members.get(low) or [low]), *joining]
    return class_of


@cache
def _same_words() -> tuple[tuple[str, ...], ...]:
    """Return words that replace each other in any store: for what is not normal, for body parts."""
    lines = files("biograft.text").joinpath("same_words.txt").read_text().splitlines()
    return (_ABNORMALITIES, *(tuple(line.split()) for line in lines))


def _shared(a: str, b: str) -> int:
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False))))


def _are_words(*texts: str) -> bool:
    return all(len(text) >= _MIN_WORD and not text.isdigit() for text in texts)


def _are_related(a: int, b: int, n: int, n_concepts: Ints, texts: Sequence[str]) -> bool:
    """Whether two words that replace each other in names of some concepts mean the same."""
    first, second = texts[a], texts[b]
    if not _are_words(first, second):
        return False
    shared = _shared(first, second)
    short = min(len(first), len(second)) <= _MIN_STEM + 1
    if shared >= (_MIN_STEM_SHORT if short else _MIN_STEM):
        return shared >= _SAME_STEM * max(len(first), len(second))
    low, high = sorted((n / n_concepts[a], n / n_concepts[b]))
    return n >= _MIN_CONCEPTS and low >= _MIN_RATIO and high >= _MIN_HIGHER_RATIO
