"""Other words for the same: learned from a store's own synonyms, without any training text.

Where two names of a concept differ in one word (*kidney failure*, *renal failure*), the one word
may stand for the other. How far it may is counted: the share of the concepts with the first word
where the second can take its place. A word may also be left out (*Alzheimer disease*,
*Alzheimer*). A mention is looked up with one or two of its words exchanged so, and with its words
in any order.

A bag of words is a 64-bit number, the sum of its words' hashes, so that exchanging a word is an
addition, and all bags of a batch are looked up at once.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from biograft.arrays import check_length, check_range, open_array
from biograft.kb.keys import hash_text

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
F32 = npt.NDArray[np.float32]

SMALL_WORDS = frozenset("of the in with by to and or a an due for from on".split())
"""Words that do not count, unless a name has no others."""

LEAST_CONCEPTS = 2
"""An exchange counts if so many concepts show it."""
LEAST_SHARE = 0.02
_CHOICES = (8, 4)
"""How many exchanges of a word are tried, for the first and for the second word."""
_MOST_WORDS = 8
"""Longer names are not compared with each other, nor are longer mentions reworded."""
_MOST_CHOICES = 12
"""A name with a hole that more words fill says nothing about them."""
_MOST_CONCEPTS = 200_000
"""Concepts that are learned from, evenly spread where there are more: shares settle early."""
_MASK = (1 << 64) - 1

Exchanges = dict[str, list[tuple[float, str]]]
"""For a word, what may take its place, the largest share first; an empty text: nothing."""


def words_of(form: str) -> tuple[str, ...]:
    """Give the distinct words of a normalised name, ascending, without small ones."""
    words = form.split()
    kept = sorted(set(words) - SMALL_WORDS)
    return tuple(kept or sorted(set(words)))


def learn_exchanges(forms: Sequence[str], of_row: I64, concepts: I64) -> Exchanges:
    """Count which words stand for each other in names of one concept.

    ``of_row`` gives the form of each name (-1: left out), ``concepts`` its concept, ascending.
    """
    seen: Counter[tuple[str, str]] = Counter()
    having: Counter[str] = Counter()
    for rows in _concepts(concepts):
        bags = {words_of(forms[form]) for form in of_row[rows].tolist() if form >= 0}
        having.update({word for bag in bags for word in bag})
        seen.update(_exchanged({bag for bag in bags if len(bag) <= _MOST_WORDS}))
    exchanges: Exchanges = defaultdict(list)
    for (word, other), n in seen.items():
        if n >= LEAST_CONCEPTS and n / having[word] >= LEAST_SHARE:
            exchanges[word].append((n / having[word], other))
    # the larger share first, then by the alphabet
    return {word: sorted(others, key=lambda e: (-e[0], e[1])) for word, others in exchanges.items()}


def _concepts(concepts: I64) -> Iterator[slice]:
    """Give the names of each concept that is learned from."""
    starts = np.flatnonzero(np.diff(concepts, prepend=-1))
    ends = np.append(starts[1:], len(concepts))
    for place in range(0, len(starts), max(1, -(-len(starts) // _MOST_CONCEPTS))):
        yield slice(int(starts[place]), int(ends[place]))


def _exchanged(bags: set[tuple[str, ...]]) -> set[tuple[str, str]]:
    """Find the pairs of words in which two bags differ; none for a word left out."""
    holes: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    for bag in bags:
        for place, word in enumerate(bag):
            holes[bag[:place] + bag[place + 1 :]].add(word)
    pairs: set[tuple[str, str]] = set()
    for rest, fillings in holes.items():
        if rest in bags:
            pairs.update((word, "") for word in fillings)
        if rest and 1 < len(fillings) < _MOST_CHOICES:
            pairs.update((a, b) for a in fillings for b in fillings if a != b)
    return pairs


class Rewording:
    """Looks names up by their words, some of them exchanged."""

    def __init__(self, exchanges: Exchanges, keys: U64, forms: npt.NDArray[np.uint32]) -> None:
        self.exchanges, self.keys, self.forms = exchanges, keys, forms
        self._hashes: dict[str, int] = {"": 0}

    @classmethod
    def learn(cls, forms: Sequence[str], of_row: I64, concepts: I64) -> Rewording:
        """Learn from the names of a store, given by their forms."""
        made = cls({}, np.zeros(0, np.uint64), np.zeros(0, np.uint32))
        bags = np.fromiter(
            (made._key(words_of(form)) for form in forms), np.uint64, count=len(forms)
        )
        order = np.argsort(bags, kind="stable")
        exchanges = learn_exchanges(forms, of_row, concepts)
        return cls(exchanges, bags[order], order.astype(np.uint32))

    def find(self, forms: Sequence[str]) -> tuple[I64, I64, F32]:
        """Find forms that say the same in other words: place in ``forms``, form, share.

        The share is 1 for the same words in another order, and the product of the shares of
        what was exchanged otherwise.
        """
        queries: list[int] = []
        keys: list[int] = []
        shares: list[float] = []
        for place, form in enumerate(forms):
            reworded = self._variants(words_of(form))
            keys += reworded
            shares += reworded.values()
            queries += [place] * len(reworded)
        asked = np.array(keys, np.uint64)
        first = np.searchsorted(self.keys, asked, "left")
        n_each = np.searchsorted(self.keys, asked, "right") - first
        which = np.repeat(np.arange(len(asked)), n_each)
        inside = np.arange(len(which)) - np.repeat(np.cumsum(n_each) - n_each, n_each)
        found = self.forms[first[which] + inside].astype(np.int64)
        place_of = np.array(queries, np.int64)[which] if len(which) else np.zeros(0, np.int64)
        return place_of, found, np.array(shares, np.float32)[which]

    def _variants(self, words: Sequence[str]) -> dict[int, float]:
        """Give the bags that say the same, with the best share of each."""
        own = self._key(words)
        found = {own: 1.0}
        if len(words) > _MOST_WORDS:
            return found
        once = list(self._exchange(own, words, 1.0, _CHOICES[0]))
        twice = [
            variant
            for key, share, rest in once
            for variant in self._exchange(key, rest, share, _CHOICES[1])
        ]
        kept = set(words)
        for key, share, bag in (*once, *twice):
            # of several words, one at least is the mention's own
            if share > found.get(key, 0.0) and (len(words) == 1 or not kept.isdisjoint(bag)):
                found[key] = share
        found.pop(0, None)  # all words left out
        return found

    def _exchange(
        self, key: int, words: Sequence[str], share: float, n_choices: int
    ) -> Iterator[tuple[int, float, tuple[str, ...]]]:
        """Exchange each word in turn, also one that was exchanged before."""
        for place, word in enumerate(words):
            before, after = words[:place], words[place + 1 :]
            without = key - self._hash(word)
            for other_share, other in self.exchanges.get(word, ())[:n_choices]:
                if share * other_share < LEAST_SHARE:
                    break
                if other not in words:
                    bag = (*before, other, *after) if other else (*before, *after)
                    yield (without + self._hash(other)) & _MASK, share * other_share, bag

    def _key(self, words: Iterable[str]) -> int:
        return sum(map(self._hash, words)) & _MASK

    def _hash(self, word: str) -> int:
        known = self._hashes.get(word)
        if known is None:
            known = self._hashes[word] = hash_text(word)
        return known

    # ---- on disk

    FILES = ("exchanges.json", "bag_keys.npy", "bag_forms.npy")

    def save(self, folder: Path) -> None:
        """Write the exchanges and the bags of all forms."""
        text = json.dumps(self.exchanges, ensure_ascii=False)
        (folder / self.FILES[0]).write_text(text, encoding="utf-8")
        np.save(folder / self.FILES[1], self.keys)
        np.save(folder / self.FILES[2], self.forms)

    @classmethod
    def load(cls, folder: Path, n_forms: int) -> Rewording:
        """Map what was written into memory; ``ValueError`` where it is not of so many forms."""
        try:
            read = json.loads((folder / cls.FILES[0]).read_text(encoding="utf-8"))
            exchanges = {
                word: [(float(share), str(other)) for share, other in others]
                for word, others in read.items()
            }
        except (AttributeError, TypeError, RecursionError) as error:
            raise ValueError(f"{cls.FILES[0]}: {error}") from error
        keys = open_array(folder / cls.FILES[1], np.uint64)
        forms = open_array(folder / cls.FILES[2], np.uint32)
        check_length("bag_keys", keys, n_forms)
        if not bool((keys[1:] >= keys[:-1]).all()):
            raise ValueError("bag_keys: expected keys that rise")
        check_length("bag_forms", forms, n_forms)
        check_range("bag_forms", forms, 0, n_forms - 1)
        return cls(exchanges, keys, forms)
