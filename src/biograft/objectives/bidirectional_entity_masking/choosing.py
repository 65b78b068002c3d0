"""Which long entities have a part hidden, and which part."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from biograft.objectives.records import HEAD_START, IGNORED, SPECIAL, TextExample

HEAD, ADJECTIVE = "head", "adjective"
PARTS = (HEAD, ADJECTIVE)


class HiddenPart(NamedTuple):
    """A part of a mention, its tokens with both ends inclusive."""

    row: int
    part: str
    first: int
    last: int


def choose_parts(
    example: TextExample, share: float, most_share: float, draw: np.random.Generator
) -> list[HiddenPart]:
    """Choose a share of the long mentions at random, and of each one of its parts.

    The number is the share in expectation. A part with which more than ``most_share`` of the
    sequence's ordinary tokens would be hidden is left out, and so are mentions with fixed tokens.
    """
    starts, fixed = example.mention_labels[HEAD_START], example.fixed_with(())
    free = [
        row
        for row in np.flatnonzero(starts != IGNORED).tolist()
        if not fixed[example.mentions[row, 0] : example.mentions[row, 1] + 1].any()
    ]
    n_wanted = int(share * len(free) + draw.random())
    # a hair more than the share, for 0.29 of 100 is a hair less than 29
    left = int(most_share * int((example.words != SPECIAL).sum()) + 1e-9)
    chosen = []
    for row in draw.permutation(np.array(free, np.int64))[:n_wanted].tolist():
        first, last = example.mentions[row, :2].tolist()
        start = int(starts[row])
        hidden = (
            HiddenPart(row, HEAD, start, last)
            if draw.random() < 0.5
            else HiddenPart(row, ADJECTIVE, first, start - 1)
        )
        size = hidden.last - hidden.first + 1
        if size <= left:
            chosen.append(hidden)
            left -= size
    return chosen
