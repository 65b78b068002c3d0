import random

import numpy as np
import pytest

from biograft.annotation.pipeline import Spans, take_best, take_disjoint


def drawn(seed):
    """Spans of five documents, in the order of the text, and their scores."""
    draw = random.Random(seed)
    rows = sorted(
        (draw.randrange(5), start, start + draw.randint(1, 6))
        for start in (draw.randrange(40) for _ in range(60))
    )
    scores = np.array([draw.choice([0.9, 0.95, 1.0]) for _ in rows])
    return Spans(*np.array(rows, np.int64).T), scores


def plainly_disjoint(spans, scores):
    rows = list(zip(*(column.tolist() for column in spans), scores, strict=True))
    order = sorted(range(len(rows)), key=lambda n: (rows[n][1] - rows[n][2], -rows[n][3], *rows[n]))
    kept = []
    for n in order:
        document, start, end, _ = rows[n]
        if all(rows[k][0] != document or rows[k][2] <= start or rows[k][1] >= end for k in kept):
            kept.append(n)
    return [rows[n][:3] for n in sorted(kept, key=lambda n: rows[n])]


@pytest.mark.parametrize("seed", range(20))
def test_disjoint_spans_are_those_of_a_plain_loop(seed):
    spans, scores = drawn(seed)
    kept = spans.take(take_disjoint(spans, scores))
    assert list(zip(*map(np.ndarray.tolist, kept), strict=True)) == plainly_disjoint(spans, scores)


@pytest.mark.parametrize("seed", range(5))
def test_the_best_of_each_document_stay_in_order(seed):
    spans, scores = drawn(seed)
    kept = take_best(spans, scores, 3).tolist()
    assert kept == sorted(kept)
    for document in range(5):
        rows = [n for n in range(len(scores)) if spans.document[n] == document]
        best = sorted(
            rows, key=lambda n: (-scores[n], spans.start[n] - spans.end[n], spans.start[n])
        )
        assert sorted(best[:3]) == [n for n in kept if spans.document[n] == document]


def test_nothing_gives_nothing():
    none = Spans(*np.zeros((3, 0), np.int64))
    assert take_disjoint(none, np.zeros(0)).tolist() == []
    assert take_best(none, np.zeros(0), 2).tolist() == []
