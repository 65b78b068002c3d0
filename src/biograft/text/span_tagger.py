"""A tagger of spans that is learned in seconds, without torch: a linear-chain CRF over words.

Each word has one of five labels: outside, first, inside, last, only (Ratinov and Roth 2009). A word
is described by what it, the words beside it and their pairs look like, and by spans of the text
that are known already (hints), such as names of a store. Descriptions are hashed to rows of a table
of weights (the hashing trick), so that a model holds no words. Training maximises the likelihood
of the labels (Lafferty et al. 2001) by AdaGrad, a text at a time; forward and backward sums give
the probability of any span.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any
from zlib import crc32

import numpy as np

from biograft.arrays import Array, Float32s, Ints, Uints
from biograft.artifacts import ArraySpec
from biograft.compute import njit

Span = tuple[int, int]
Words = list[Span]
Hints = Mapping[Span, str]
"""Spans that are known before, each with a word on what it is."""
Hashes = Uints

OUTSIDE, FIRST, INSIDE, LAST, ONLY = range(5)
_ENDED, _OPEN = (OUTSIDE, LAST, ONLY), (FIRST, INSIDE)
_NEVER = -1e9
_ROWS = 1 << 20
_NEAR = (3, 4, 13, 4, 3)
"""Descriptions that are used of each word from two before to two behind."""
_EPOCHS, _RATE, _DECAY = 10, 0.05, 1e-4
_LEAST_WEIGHT = 0.02
"""Rows whose weights are all smaller are not kept."""
_LEAST = 0.03
"""Probability from which a span is proposed."""
_MAX_WORDS = 12
TAGGER_ARRAYS = {
    "rows": ArraySpec("uint32", ("n",), low=0, high=_ROWS - 1, rising=True),
    "weights": ArraySpec("float16", ("n", 5)),
    "transitions": ArraySpec("float32", (5, 5)),
}
"""The arrays of a tagger on disk."""
_WORD = re.compile(r"[\u3400-\u9fff]|[^\W\d_\u3400-\u9fff]+|\d+|[^\w\s]")


def words_of(text: str) -> Words:
    """Return the spans of words, numbers, Chinese characters and punctuation marks.

    >>> words_of("T2, 发热")
    [(0, 1), (1, 2), (2, 3), (4, 5), (5, 6)]
    """
    return [match.span() for match in _WORD.finditer(text)]


class SpanTagger:
    """Says how probable it is that a span of a text is a mention.

    Args:
        weights: Weights of the labels, a row for each hash.
        transitions: Weights of pairs of labels.
    """

    def __init__(self, weights: Float32s, transitions: Float32s) -> None:
        self._weights, self._transitions = weights, transitions

    @classmethod
    def fit(
        cls, texts: Sequence[str], hints: Sequence[Hints], spans: Sequence[Collection[Span]]
    ) -> SpanTagger:
        """Learn to tag texts; of spans that overlap the longest counts.

        Args:
            texts: Texts.
            hints: Spans of each text that are known before.
            spans: Spans of each text that are to be found.
        """
        words = [words_of(text) for text in texts]
        rows = _describe(texts, words, hints)
        labels = np.concatenate([_labels(*each) for each in zip(words, spans, strict=True)])
        ends = np.cumsum([0, *map(len, words)])
        weights = np.zeros((_ROWS, 5), np.float32)
        transitions = _no_transitions()
        squares = np.full_like(weights, 0.01), np.ones_like(transitions)
        rng = np.random.default_rng(0)
        for _ in range(_EPOCHS):
            order = rng.permutation(len(texts))
            _train(rows, labels, ends, order, weights, transitions, *squares, _RATE, _DECAY)
        return cls(weights, transitions)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> SpanTagger:
        """Make a tagger of its arrays.

        Args:
            arrays: As :meth:`arrays` returns them.
        """
        weights = np.zeros((_ROWS, 5), np.float32)
        weights[arrays["rows"]] = arrays["weights"]
        transitions = np.maximum(arrays["transitions"].astype(np.float32), _NEVER)
        return cls(weights, transitions)

    def arrays(self) -> dict[str, Array]:
        """Return what the tagger has learned, as arrays."""
        rows = np.flatnonzero(np.abs(self._weights).max(1) > _LEAST_WEIGHT).astype(np.uint32)
        weights = self._weights[rows].astype(np.float16)
        return {"rows": rows, "weights": weights, "transitions": self._transitions}

    def probabilities(
        self, texts: Sequence[str], hints: Sequence[Hints], asked: Sequence[Collection[Span]]
    ) -> list[dict[Span, float]]:
        """Return the probability of spans of texts: of all that are likely, and of those asked for.

        Args:
            texts: Texts.
            hints: Spans of each text that are known before.
            asked: Spans of each text; words that are in a span in part count as in it.
        """
        words = [words_of(text) for text in texts]
        rows, end = _describe(texts, words, hints), 0
        found: list[dict[Span, float]] = []
        for own, more in zip(words, asked, strict=True):
            start, end = end, end + len(own)
            if not own:
                found.append({})
                continue
            scores = self._weights[rows[start:end]].sum(1)
            lattice = LabelLattice(scores, self._transitions)
            likely = {(own[i][0], own[j][1]): p for i, j, p in lattice.likely()}
            for span in more:
                if span not in likely and (covered := _covered(own, span)):
                    likely[span] = lattice.probability(covered[0], covered[-1])
            found.append(likely)
        return found


class LabelLattice:
    """Sums over all ways to label a text.

    Args:
        scores: Score of each label of each word.
        transitions: Weights of pairs of labels.
    """

    def __init__(self, scores: Float32s, transitions: Float32s) -> None:
        before, behind, self._total = _sums(scores, transitions)
        self._scores, self._transitions = scores.tolist(), transitions.tolist()
        self._before, self._behind = before, behind

    def likely(self) -> Iterator[tuple[int, int, float]]:
        """Yield spans of words, first and last, that are likely."""
        total = self._before + self._behind - self._total
        for i in np.flatnonzero(np.logaddexp(total[:, FIRST], total[:, ONLY]) > math.log(_LEAST)):
            for j in range(int(i), min(len(total), int(i) + _MAX_WORDS)):
                if (probability := self.probability(int(i), j)) > _LEAST:
                    yield int(i), j, probability

    def probability(self, i: int, j: int) -> float:
        """Return the probability of the span of words i to j.

        Args:
            i: The first word.
            j: The last word.
        """
        if i == j:
            log = self._before[i, ONLY] + self._behind[i, ONLY]
        else:
            log, label = self._before[i, FIRST] + self._behind[j, LAST], FIRST
            for n in range(i + 1, j + 1):
                following = LAST if n == j else INSIDE
                log += self._transitions[label][following] + self._scores[n][following]
                label = following
        return float(min(math.exp(min(log - self._total, 0.0)), 1.0))


def _no_transitions() -> Float32s:
    transitions = np.zeros((5, 5), np.float32)
    for labels, following in ((_ENDED, (INSIDE, LAST)), (_OPEN, (OUTSIDE, FIRST, ONLY))):
        transitions[np.ix_(labels, following)] = _NEVER
    return transitions


def _covered(words: Words, span: Span) -> range:
    """Return the words that a span covers, also in part."""
    first = bisect_right(words, span[0], key=lambda word: word[1])
    return range(first, bisect_left(words, span[1], key=lambda word: word[0]))


def _label_of(n: int, covered: Sequence[int]) -> int:
    if len(covered) == 1:
        return ONLY
    return FIRST if n == covered[0] else LAST if n == covered[-1] else INSIDE


def _labels(words: Words, spans: Collection[Span]) -> Ints:
    labels = np.zeros(len(words), np.int64)
    for span in sorted(spans, key=lambda span: (span[0] - span[1], span)):
        covered = _covered(words, span)
        if not labels[covered.start : covered.stop].any():
            for n in covered:
                labels[n] = _label_of(n, covered)
    return labels


def _describe(texts: Sequence[str], words: Sequence[Words], hints: Sequence[Hints]) -> Uints:
    """Return the rows of weights that describe each word."""
    kinds: dict[str, int] = {"": 0}  # two words that are none stand before and behind each text
    padded, hinted = [0, 0], [[0, 0], [0, 0]]
    at: list[int] = []
    for text, own, known in zip(texts, words, hints, strict=True):
        at += range(len(padded), len(padded) + len(own))
        padded += [kinds.setdefault(text[start:end], len(kinds)) for start, end in own]
        padded += [0, 0]
        labelled: list[list[int]] = [[1, 1] for _ in own]
        for span, what in known.items():
            covered = _covered(own, span)
            for n in covered:
                label = _label_of(n, covered)
                labelled[n] = [label + 2, crc32(f"{label} {what}".encode())]
        hinted += [*labelled, [0, 0], [0, 0]]
    looks = np.array([_look(word) for word in kinds], np.uint32)
    kind, place = np.array(padded), np.array(at, np.int64)
    hint = np.array(hinted, np.uint32)
    columns = [
        _mix(looks[kind[place + offset], :width], offset + 10)
        for offset, width in zip(range(-2, 3), _NEAR, strict=True)
    ]
    for offset in range(-2, 2):
        pair = (looks[kind[place + offset + n], :1] for n in (0, 1))
        columns.append(_mix(_mix(*pair), offset + 50))
    columns += [_mix(hint[place + offset], offset + 30) for offset in (-1, 0, 1)]
    columns.append(_mix(hint[place], looks[kind[place], :1]))
    return np.concatenate(columns, 1) % np.uint32(_ROWS)


def _look(word: str) -> list[int]:
    low = word.lower()
    shape = re.sub(r"(.)\1+", r"\1", "".join(_class_of(char) for char in word))
    parts = (low, low.removesuffix("s"), shape, low[-4:], low[-3:], word, str(min(len(word), 8)))
    more = (low[-2:], low[-5:], low[-6:], low[:3], low[:4], low[:5])
    return [crc32(f"{n} {part}".encode()) for n, part in enumerate((*parts, *more))]


def _class_of(char: str) -> str:
    return "A" if char.isupper() else "a" if char.islower() else "0" if char.isdigit() else char


def _mix(first: Hashes, second: Hashes | int) -> Hashes:
    """Return a hash of pairs of hashes."""
    mixed = first * np.uint32(0x9E3779B1) + np.asarray(second, np.uint32) * np.uint32(0x85EBCA77)
    mixed ^= mixed >> np.uint32(15)
    mixed *= np.uint32(0xC2B2AE3D)
    hashed: Hashes = mixed ^ (mixed >> np.uint32(13))
    return hashed


# ---- loops


@njit()
def _log_sum(values: Any) -> Any:
    highest, total = values.max(), 0.0
    for value in values:
        total += np.exp(value - highest)
    return highest + np.log(total)


@njit(work=lambda scores, transitions: 100 * len(scores))
def _sums(scores: Any, transitions: Any) -> Any:
    """Return the logarithms of the sums before and behind each label, and of all together."""
    n, width = scores.shape
    before, behind = np.full((n, width), -1e9), np.zeros((n, width))
    summed = np.empty(width)
    for label in range(width):
        if transitions[0, label] > -1e8:  # a text begins, and ends, as if outside
            before[0, label] = scores[0, label]
        if transitions[label, 0] <= -1e8:
            behind[n - 1, label] = -1e9
    for i in range(1, n):
        for label in range(width):
            for other in range(width):
                summed[other] = before[i - 1, other] + transitions[other, label]
            before[i, label] = max(_log_sum(summed) + scores[i, label], -1e9)
    for i in range(n - 2, -1, -1):
        for label in range(width):
            for other in range(width):
                summed[other] = (
                    behind[i + 1, other] + transitions[label, other] + scores[i + 1, other]
                )
            behind[i, label] = max(_log_sum(summed), -1e9)
    for label in range(width):
        summed[label] = before[n - 1, label] + behind[n - 1, label]
    return before, behind, _log_sum(summed)


@njit()
def _train(
    rows: Any,
    labels: Any,
    ends: Any,
    order: Any,
    weights: Any,
    transitions: Any,
    squares: Any,
    pair_squares: Any,
    rate: Any,
    decay: Any,
) -> None:
    """Change the weights by one reading of all texts."""
    width, n_rows = weights.shape[1], rows.shape[1]
    wrong = np.zeros(width)
    for text in order:
        low, n = ends[text], ends[text + 1] - ends[text]
        if n == 0:
            continue
        scores = np.zeros((n, width))
        for i in range(n):
            for column in range(n_rows):
                for label in range(width):
                    scores[i, label] += weights[rows[low + i, column], label]
        before, behind, total = _sums(scores, transitions)
        pairs = np.zeros((width, width))
        for i in range(n):
            own = labels[low + i]
            if i > 0:
                pairs[labels[low + i - 1], own] -= 1
                for other in range(width):
                    for label in range(width):
                        pairs[other, label] += np.exp(
                            before[i - 1, other]
                            + transitions[other, label]
                            + scores[i, label]
                            + behind[i, label]
                            - total
                        )
            for label in range(width):
                wrong[label] = np.exp(before[i, label] + behind[i, label] - total)
            wrong[own] -= 1
            if np.abs(wrong).max() < 1e-4:
                continue
            for column in range(n_rows):
                row = rows[low + i, column]
                for label in range(width):
                    slope = wrong[label] + decay * weights[row, label]
                    squares[row, label] += slope * slope
                    weights[row, label] -= rate * slope / np.sqrt(squares[row, label])
        for other in range(width):
            for label in range(width):
                if transitions[other, label] > -1e8:
                    slope = pairs[other, label]
                    pair_squares[other, label] += slope * slope
                    transitions[other, label] -= rate * slope / np.sqrt(pair_squares[other, label])
