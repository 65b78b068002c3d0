"""Mentions from tags, against a plain loop."""

import torch

from biograft.models import spans_of_tags


def scan(tags, length, max_mentions=0):
    """The published rule, one token after the other."""
    spans, start = [], None
    for position in range(1, length):
        tag = tags[position]
        if start is not None and tag != 2:
            spans.append((start, position - 1))
            start = None
        if tag == 1 or (tag == 2 and start is None):
            start = position
    if start is not None:
        spans.append((start, length - 1))
    return spans[:max_mentions] if max_mentions else spans


def test_spans_are_those_of_a_scan():
    rng = torch.Generator().manual_seed(1)
    for max_mentions in (0, 1, 3):
        tags = torch.randint(0, 3, (50, 12), generator=rng)
        lengths = torch.randint(1, 13, (50,), generator=rng)
        mask = (torch.arange(12) < lengths[:, None]).long()
        expected = [
            [sequence, *span]
            for sequence in range(50)
            for span in scan(tags[sequence].tolist(), int(lengths[sequence]), max_mentions)
        ]
        assert spans_of_tags(tags, mask, max_mentions).tolist() == expected
