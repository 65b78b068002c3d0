"""Which tokens are hidden together, and which of these are chosen."""

from __future__ import annotations

import numpy as np

from biograft.objectives.records import SPECIAL, Ints, TextExample


def number_units(example: TextExample, mode: str) -> Ints:
    """Give the number of the unit of each token, ascending from 0; ``SPECIAL`` where none.

    A unit is a token, a whole word, or a whole word or mention. A mention that begins or ends
    within a word makes one unit with that word.
    """
    words = example.words
    begins = np.ones(len(words), bool)
    if mode != "token":
        begins[1:] = words[1:] != words[:-1]
    if mode == "whole_entity":
        for first, last in example.mentions[:, :2]:
            begins[first + 1 : last + 1] = False
    ordinary = words != SPECIAL
    numbers = np.cumsum(begins & ordinary) - 1
    return np.where(ordinary, numbers, SPECIAL)


def leave_fixed(units: Ints, example: TextExample, mask: int, share: float) -> tuple[Ints, float]:
    """Give the units that are left to choose from, and which share of their tokens is wanted.

    A unit with a fixed token is none any more. What the mask hides of the fixed tokens counts as
    chosen: the less is wanted of the others.
    """
    if example.fixed is None or not example.fixed.any():
        return units, share
    left = np.where(np.isin(units, units[example.fixed]), SPECIAL, units)
    n_hidden = int((example.tokens[example.fixed] == mask).sum())
    wanted = share * int((units != SPECIAL).sum()) - n_hidden
    n_left = int((left != SPECIAL).sum())
    return left, min(1.0, max(0.0, wanted) / max(1, n_left))


def choose_units(sizes: Ints, share: float, draw: np.random.Generator) -> Ints:
    """Choose units of so many tokens at random; give their numbers.

    They are taken in random order until the share of the tokens is reached. The one with which it
    would be exceeded is taken with the chance (what is lacking) / (its size): so the share is
    exact in expectation for every sequence, whatever the sizes, and no unit is split.
    """
    order = draw.permutation(len(sizes))
    reached = np.cumsum(sizes[order])
    wanted = share * sizes.sum()
    n_whole = int(np.searchsorted(reached, wanted, side="right"))
    if n_whole < len(order):
        lacking = wanted - (reached[n_whole - 1] if n_whole else 0)
        n_whole += int(draw.random() * sizes[order[n_whole]] < lacking)
    return order[:n_whole]
