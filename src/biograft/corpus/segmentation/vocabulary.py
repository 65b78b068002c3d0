"""The entity vocabulary, and the most probable way to write a run of units with its words.

Words are the names of a store and the phrases mined from a corpus; a unit that is no word may
stand alone. How probable a word is comes from counts: first those of the corpus, then how often
the words were used when the names themselves were split, twice over (expectation-maximisation
with the best split in place of all splits).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from biograft.corpus.segmentation.units import Unit, join

ROUNDS = 2
_ALONE = 0.02
"""What a unit that is no word counts for, as a share of what a word met once does."""


class Vocabulary:
    """Words with counts; splits runs of units by the product of their probabilities."""

    def __init__(
        self, counts: Mapping[str, float], language: str, total: float | None = None
    ) -> None:
        """Take words with counts; ``total``: what they are shares of, if words are yet to come."""
        self.language = language
        self.counts = dict(counts)
        self.total = math.fsum(self.counts.values()) if total is None else total
        self._log_total = math.log(self.total + 1)
        self._alone = math.log(_ALONE) - self._log_total
        self._longest = 1
        self._log = {word: math.log(n) - self._log_total for word, n in self.counts.items()}
        for word in self.counts:
            self._longest = max(self._longest, self._length(word))

    def __contains__(self, word: str) -> bool:
        return word in self._log

    def __len__(self) -> int:
        return len(self._log)

    def add(self, word: str, count: float = 1.0) -> None:
        """Add a word, or make a known one as frequent as this."""
        if count > self.counts.get(word, 0.0):
            self.counts[word] = count
            self._log[word] = math.log(count) - self._log_total
            self._longest = max(self._longest, self._length(word))

    def split(self, run: Sequence[Unit], *, whole: bool = True) -> list[Sequence[Unit]]:
        """Split a run where that is most probable; ``whole=False`` forbids leaving it whole.

        Of splits that are equally probable the one with the longer last word is taken.
        """
        forms = [unit.form for unit in run]
        n = len(run)
        best, cut = [0.0] + [-math.inf] * n, [0] * (n + 1)
        for end in range(1, n + 1):
            for start in range(max(0, end - self._longest), end):
                if not whole and end - start == n > 1:
                    continue
                chance = best[start] + self._chance(forms[start:end])
                if chance > best[end]:
                    best[end], cut[end] = chance, start
        pieces: list[Sequence[Unit]] = []
        while n:
            pieces.append(run[cut[n] : n])
            n = cut[n]
        return pieces[::-1]

    def _chance(self, forms: Sequence[str]) -> float:
        known = self._log.get(forms[0] if len(forms) == 1 else join(forms, self.language))
        if known is not None:
            return known
        return self._alone if len(forms) == 1 else -math.inf

    def _length(self, word: str) -> int:
        """Bound a word's length in units from above."""
        return word.count(" ") + 1 if " " in word else len(word)


def fit_vocabulary(
    counts: Mapping[str, float], names: Iterable[Sequence[Unit]], language: str
) -> Vocabulary:
    """Fit the probabilities of words to the names that they make up.

    ``names`` are runs of units. None is left whole, since how it falls apart is the question; a
    word that no split uses keeps a small count.
    """
    runs = [run for run in names if len(run) > 1]
    vocabulary = Vocabulary(counts, language)
    for _ in range(ROUNDS):
        used: Counter[str] = Counter()
        for run in runs:
            for piece in vocabulary.split(run, whole=False):
                used[join([unit.form for unit in piece], language)] += 1
        fresh = {word: used.get(word, 0) + _kept(counts[word]) for word in counts}
        vocabulary = Vocabulary(fresh, language)
    return vocabulary


def _kept(count: float) -> float:
    """Let the corpus speak softly: its everyday words are not those of names."""
    return 0.1 + 0.1 * math.log1p(count)
