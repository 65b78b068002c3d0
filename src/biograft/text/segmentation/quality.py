"""Phrase quality: a random forest trained on known names, as in AutoPhrase (Shang et al. 2018).

Names of the store are positives, all other frequent runs unlabelled: most of them are no phrases.
Each tree learns from as many positives as unlabelled runs, sampled anew, until its leaves are pure.
The few phrases among the unlabelled ones mislead single trees, but not their mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

N_TREES = 200
SAMPLE_SIZE = 100
"""Positives, and as many unlabelled runs, that a tree learns from."""
MIN_POSITIVES = 10
"""With fewer names among the runs of a corpus, nothing is learned."""
_LEAF = -1


class Tree(NamedTuple):
    """The nodes of a decision tree, in arrays; node 0 is the root."""

    feature: Ints
    """The feature that a node splits by; -1 at leaves."""
    threshold: Floats
    """Values up to it go left."""
    children: Ints  # (nodes, 2)
    value: Floats
    """The ratio of positives among the training examples of a node."""

    def predict(self, features: Floats) -> Floats:
        """Return the value of the leaf of each row of (rows, features)."""
        node = np.zeros(len(features), np.int64)
        rows = np.arange(len(features))
        while len(rows := rows[self.feature[node[rows]] != _LEAF]):
            at = node[rows]
            right = features[rows, self.feature[at]] > self.threshold[at]
            node[rows] = self.children[at, right.astype(np.int64)]
        return self.value[node]


@dataclass(frozen=True, slots=True)
class PhraseForest:
    """Decision trees whose mean is the quality of a phrase."""

    trees: tuple[Tree, ...]

    @classmethod
    def fit(cls, positive: Floats, unlabelled: Floats, *, seed: int = 0) -> PhraseForest:
        """Fit to the features (runs, features) of names and of other runs."""
        rng = np.random.default_rng(seed)
        labels = np.repeat([True, False], SAMPLE_SIZE)
        trees = []
        for _ in range(N_TREES):
            rows = (rng.integers(len(each), size=SAMPLE_SIZE) for each in (positive, unlabelled))
            sampled = [each[r] for each, r in zip((positive, unlabelled), rows, strict=True)]
            trees.append(grow_tree(np.concatenate(sampled), labels, rng))
        return cls(tuple(trees))

    def predict(self, features: Floats) -> Floats:
        """Return the quality, from 0 to 1, of runs with these features (runs, features)."""
        total = np.zeros(len(features))
        for tree in self.trees:
            total += tree.predict(features)
        return total / len(self.trees)


def grow_tree(features: Floats, labels: Flags, rng: np.random.Generator) -> Tree:
    """Grow a tree until its leaves are pure; each split is chosen among some random features."""
    feature: list[int] = []
    threshold: list[float] = []
    children: list[list[int]] = []
    value: list[float] = []
    waiting = [(np.arange(len(labels)), 0, 0)]  # rows, parent, side
    while waiting:
        rows, parent, side = waiting.pop()
        number = len(feature)
        if number:
            children[parent][side] = number
        split = find_split(features[rows], labels[rows], rng)
        feature.append(_LEAF if split is None else split[0])
        threshold.append(0.0 if split is None else split[1])
        children.append([0, 0])
        value.append(float(labels[rows].mean()))
        if split is not None:
            right = features[rows, split[0]] > split[1]
            waiting += [(rows[right], number, 1), (rows[~right], number, 0)]
    return Tree(np.array(feature), np.array(threshold), np.array(children), np.array(value))


def find_split(
    features: Floats, labels: Flags, rng: np.random.Generator
) -> tuple[int, float] | None:
    """Find the feature and threshold with the least Gini impurity; None if there is no use.

    About the square root of the features are tried; more only where none of these can split.
    """
    if labels.all() or not labels.any():
        return None
    n_features = features.shape[1]
    n_tried = max(1, round(n_features**0.5))
    best: tuple[float, int, float] | None = None
    for tried, column in enumerate(rng.permutation(n_features).tolist()):
        if tried >= n_tried and best is not None:
            break
        found = split_column(features[:, column], labels)
        if found is not None and (best is None or found[0] < best[0]):
            best = (found[0], column, found[1])
    return None if best is None else best[1:]


def split_column(values: Floats, labels: Flags) -> tuple[float, float] | None:
    """Return the impurity and the threshold of the best split of a column; None if it is constant.

    The impurity is the sum of 2 p (1 - p) over both sides, weighted by their sizes.
    """
    order = np.argsort(values, kind="stable")
    ascending, positives = values[order], np.cumsum(labels[order])
    ends = np.flatnonzero(ascending[1:] > ascending[:-1])  # last row on the left
    if not len(ends):
        return None
    n, total = len(values), int(positives[-1])
    n_left, left = ends + 1, positives[ends]
    n_right, right = n - n_left, total - left
    impurity = 2 * (left * (n_left - left) / n_left + right * (n_right - right) / n_right) / n
    at = int(np.argmin(impurity))
    low, high = ascending[ends[at]], ascending[ends[at] + 1]
    middle = (low + high) / 2
    return float(impurity[at]), float(low if middle >= high else middle)
