"""Exchange the two parts of a sequence, with all that is known of their tokens."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from biograft.objectives.records import HEAD_START, IGNORED, SPECIAL, Ints, TextExample


def swap_segments(example: TextExample) -> TextExample:
    """Make ``[CLS] B [SEP] A [SEP]`` of ``[CLS] A [SEP] B [SEP]``."""
    length = len(example.tokens)
    second = int(np.argmax(example.segments == 1))
    source = np.concatenate([[0], np.arange(second, length), np.arange(1, second)])
    moved = np.argsort(source)  # where each token stands now
    spans = example.mentions.copy()
    spans[:, :2] = moved[example.mentions[:, :2]]
    order = np.argsort(spans[:, 0])
    mention_labels = {name: labels[order] for name, labels in example.mention_labels.items()}
    if HEAD_START in mention_labels:  # these are places
        starts = mention_labels[HEAD_START]
        mention_labels[HEAD_START] = np.where(starts == IGNORED, IGNORED, moved[starts.clip(0)])
    segments = np.zeros_like(example.segments)
    segments[1 + length - second :] = 1
    return replace(
        example,
        tokens=example.tokens[source],
        segments=segments,
        words=_renumber(example.words[source]),
        mentions=spans[order],
        token_labels={name: labels[source] for name, labels in example.token_labels.items()},
        mention_labels=mention_labels,
        fixed=None if example.fixed is None else example.fixed[source],
    )


def _renumber(words: Ints) -> Ints:
    """Number words in the order of their tokens."""
    ordinary = words != SPECIAL
    begins = ordinary & np.append(True, words[1:] != words[:-1])
    return np.where(ordinary, np.cumsum(begins) - 1, SPECIAL)
