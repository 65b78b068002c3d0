"""The nearest rows, against sorting everything."""

import pytest
import torch

from biograft.nn.knowledge import nearest
from biograft.nn.knowledge.nearest import nearest_rows


@pytest.mark.parametrize("n_rows", [3, 50, 1000, 3333, 6400])
@pytest.mark.parametrize("at_once", [1 << 25, 7000])
def test_they_are_the_first_of_all_sorted(n_rows, at_once, monkeypatch):
    monkeypatch.setattr(nearest, "_AT_ONCE", at_once)
    rng = torch.Generator().manual_seed(n_rows)
    queries = torch.randn(11, 4, generator=rng)
    table = torch.randn(n_rows, 4, generator=rng)
    rows = nearest_rows(queries, table, 10)
    for query, found in zip(queries, rows.tolist(), strict=True):
        scores = [float(score) for score in table @ query]
        assert found == sorted(range(n_rows), key=lambda row: -scores[row])[:10]


def test_no_query_gives_no_row():
    assert nearest_rows(torch.zeros(0, 4), torch.zeros(9, 4), 3).shape == (0, 3)
