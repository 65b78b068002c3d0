"""Synonym substitution: word synonyms learned from the names of a store, without training text.

If two names of a concept differ in one word (*kidney failure*, *renal failure*), the second word
may substitute the first. Its ratio is the fraction of the concepts with the first word in which
the second can replace it. A word may also be dropped (*Alzheimer disease*, *Alzheimer*). A
mention is looked up with up to two of its words substituted, and with its words in any order.

The key of a bag of words is a 64-bit number, the sum of the hashes of its words. A substitution
is then an addition, and all bags of a batch are looked up at once.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from biograft.arrays import Float32s, Ints, Uint64s, Uints
from biograft.artifacts import check_length, check_range, open_array, save_array
from biograft.kb.keys import hash_text

SMALL_WORDS = frozenset("of the in with by to and or a an due for from on".split())
"""Words that are ignored, unless a name has no others."""

MIN_CONCEPTS = 2
"""Number of concepts that must show a substitution."""
MIN_RATIO = 0.02
MIN_SINGLE_RATIO = 0.1
"""Least ratio with which a mention of one word is replaced: it has no other word to keep."""
_CHOICES = (8, 4)
"""Number of substitutions tried for a word: for the first and for the second word."""
_MAX_WORDS = 8
"""Longer names are not compared, and longer mentions are not varied."""
_MAX_CHOICES = 12
"""A slot that more words of a concept can fill does not make them synonyms."""
_MAX_CONCEPTS = 200_000
"""Concepts to learn from, evenly spaced if there are more: the ratios converge early."""
_MASK = (1 << 64) - 1

Substitutions = dict[str, list[tuple[float, str]]]
"""For each word, (ratio, substitute) pairs, the highest ratio first; "" drops the word."""


def words_of(form: str) -> tuple[str, ...]:
    """Return the distinct words of a normalised name, ascending, without small words."""
    words = form.split()
    content = sorted(set(words) - SMALL_WORDS)
    return tuple(content or sorted(set(words)))


def learn_substitutions(forms: Sequence[str], of_row: Ints, concepts: Ints) -> Substitutions:
    """Count which words are interchangeable in names of one concept.

    Args:
        forms: Distinct normalised names.
        of_row: Form of each name of the store; -1: excluded.
        concepts: Concept of each name, ascending.
    """
    pairs: Counter[tuple[str, str]] = Counter()
    word_counts: Counter[str] = Counter()
    for rows in _concepts(concepts):
        bags = {words_of(forms[form]) for form in of_row[rows].tolist() if form >= 0}
        word_counts.update({word for bag in bags for word in bag})
        pairs.update(_substituted({bag for bag in bags if len(bag) <= _MAX_WORDS}))
    substitutions: Substitutions = defaultdict(list)
    for (word, other), n in pairs.items():
        if n >= MIN_CONCEPTS and n / word_counts[word] >= MIN_RATIO:
            substitutions[word].append((n / word_counts[word], other))
    # words alphabetically; of each the highest ratio first
    return {
        word: sorted(others, key=lambda e: (-e[0], e[1]))
        for word, others in sorted(substitutions.items())
    }


def _concepts(concepts: Ints) -> Iterator[slice]:
    """Yield the names of each concept to learn from."""
    starts = np.flatnonzero(np.diff(concepts, prepend=-1))
    ends = np.append(starts[1:], len(concepts))
    for i in range(0, len(starts), max(1, -(-len(starts) // _MAX_CONCEPTS))):
        yield slice(int(starts[i]), int(ends[i]))


def _substituted(bags: set[tuple[str, ...]]) -> set[tuple[str, str]]:
    """Find the pairs of words in which two bags differ; "" stands for a dropped word."""
    slots: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    for bag in bags:
        for i, word in enumerate(bag):
            slots[bag[:i] + bag[i + 1 :]].add(word)
    pairs: set[tuple[str, str]] = set()
    for rest, fillings in slots.items():
        if rest in bags:
            pairs.update((word, "") for word in fillings)
        if rest and 1 < len(fillings) < _MAX_CHOICES:
            pairs.update((a, b) for a in fillings for b in fillings if a != b)
    return pairs


class WordSynonyms:
    """Looks up names by their words in any order, some of them substituted by synonyms.

    Args:
        substitutions: Words that a word may be replaced by, with their ratios.
        keys: Hash of the words of each form, ascending.
        forms: Form of each key.
    """

    def __init__(self, substitutions: Substitutions, keys: Uint64s, forms: Uints) -> None:
        self.substitutions, self.keys, self.forms = substitutions, keys, forms
        self._hashes: dict[str, int] = {"": 0}
        self._choices: dict[str, list[tuple[float, str, int]]] = {}

    @classmethod
    def learn(cls, forms: Sequence[str], of_row: Ints, concepts: Ints) -> WordSynonyms:
        """Learn from the names of a store, given by their forms.

        Args:
            forms: Distinct normalised names.
            of_row: Form of each name of the store; -1: excluded.
            concepts: Concept of each name, ascending.
        """
        empty = cls({}, np.zeros(0, np.uint64), np.zeros(0, np.uint32))
        bags = np.fromiter(
            (empty._key(words_of(form)) for form in forms), np.uint64, count=len(forms)
        )
        order = np.argsort(bags, kind="stable")
        substitutions = learn_substitutions(forms, of_row, concepts)
        return cls(substitutions, bags[order], order.astype(np.uint32))

    def find(self, forms: Sequence[str]) -> tuple[Ints, Ints, Float32s]:
        """Find forms that are synonymous: index in ``forms``, form, ratio.

        The ratio is 1 for the same words in another order, else the product of the ratios of the
        substitutions.
        """
        queries: list[int] = []
        keys: list[int] = []
        ratios: list[float] = []
        for query, form in enumerate(forms):
            variants = self._variants(words_of(form))
            keys += variants
            ratios += variants.values()
            queries += [query] * len(variants)
        bags = np.array(keys, np.uint64)
        first = np.searchsorted(self.keys, bags, "left")
        n_forms = np.searchsorted(self.keys, bags, "right") - first
        bag = np.repeat(np.arange(len(bags)), n_forms)
        offset = np.arange(len(bag)) - np.repeat(np.cumsum(n_forms) - n_forms, n_forms)
        matches = self.forms[first[bag] + offset].astype(np.int64)
        check_range("bag_forms", matches, 0, len(self.forms) - 1)
        query_of = np.array(queries, np.int64)[bag] if len(bag) else np.zeros(0, np.int64)
        return query_of, matches, np.array(ratios, np.float32)[bag]

    def _variants(self, words: Sequence[str]) -> dict[int, float]:
        """Return the keys of the synonymous bags, with the highest ratio of each."""
        whole = self._key(words)
        variants = {whole: 1.0}
        if len(words) > _MAX_WORDS:
            return variants
        once = [
            (key, ratio, (*words[:i], *((other,) if other else ()), *words[i + 1 :]))
            for i, key, ratio, other in self._substitute(whole, words, 1.0, _CHOICES[0])
        ]
        least = MIN_SINGLE_RATIO if len(words) == 1 else 0.0
        for key, ratio, _ in once:
            if ratio >= least and ratio > variants.get(key, 0.0):
                variants[key] = ratio
        for first, first_ratio, rest in once:
            for i, key, ratio, other in self._substitute(first, rest, first_ratio, _CHOICES[1]):
                if ratio < least or ratio <= variants.get(key, 0.0):
                    continue
                # of two words, at least one must be from the mention; of more, one always is
                if len(words) != 2 or not {*rest[:i], other, *rest[i + 1 :]}.isdisjoint(words):
                    variants[key] = ratio
        variants.pop(0, None)  # all words dropped
        return variants

    def _substitute(
        self, key: int, words: Sequence[str], ratio: float, n_choices: int
    ) -> Iterator[tuple[int, int, float, str]]:
        """Substitute each word in turn, including one that is a substitute itself.

        Yields:
            The number of the word, the key and the ratio of the variant, and the substitute.
        """
        for i, word in enumerate(words):
            choices = self._choices.get(word)
            if choices is None:
                choices = self._choices[word] = [
                    (other_ratio, other, self._hash(other) - self._hash(word))
                    for other_ratio, other in self.substitutions.get(word, ())[: _CHOICES[0]]
                ]
            for other_ratio, other, change in choices[:n_choices]:
                if ratio * other_ratio < MIN_RATIO:
                    break
                if other not in words:
                    yield i, (key + change) & _MASK, ratio * other_ratio, other

    def _key(self, words: Iterable[str]) -> int:
        return sum(map(self._hash, words)) & _MASK

    def _hash(self, word: str) -> int:
        value = self._hashes.get(word)
        if value is None:
            value = self._hashes[word] = hash_text(word)
        return value

    # ---- on disk

    FILES = ("substitutions.json", "bag_keys.npy", "bag_forms.npy")

    def save(self, folder: Path) -> None:
        """Write the substitutions and the bags of all forms."""
        text = json.dumps(self.substitutions, ensure_ascii=False)
        (folder / self.FILES[0]).write_text(text, encoding="utf-8")
        save_array(folder / self.FILES[1], self.keys)
        save_array(folder / self.FILES[2], self.forms)

    @classmethod
    def load(cls, folder: Path, n_forms: int) -> WordSynonyms:
        """Load the substitutions and map the bags.

        The bags are not read; what is found in them is checked then.

        Args:
            folder: Folder of the index.
            n_forms: Number of its forms; what does not fit raises a ``ValueError``.
        """
        try:
            content = json.loads((folder / cls.FILES[0]).read_text(encoding="utf-8"))
            substitutions = {
                word: [(float(ratio), str(other)) for ratio, other in others]
                for word, others in content.items()
            }
        except (AttributeError, TypeError, RecursionError) as error:
            raise ValueError(f"{cls.FILES[0]}: {error}") from error
        keys = open_array(folder / cls.FILES[1], np.uint64)
        forms = open_array(folder / cls.FILES[2], np.uint32)
        check_length("bag_keys", keys, n_forms)
        check_length("bag_forms", forms, n_forms)
        return cls(substitutions, keys, forms)
