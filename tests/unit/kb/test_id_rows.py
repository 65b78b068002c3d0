"""The hash table of ids finds what a dictionary does."""

from __future__ import annotations

import random

import polars as pl
import pytest

from biograft.kb import id_rows
from biograft.kb.id_rows import IdRows


@pytest.fixture(params=[0, 1 << 30], ids=["table", "join"])
def _way(request, monkeypatch):
    monkeypatch.setattr(id_rows, "MIN_ROWS", request.param)


@pytest.mark.usefixtures("_way")
@pytest.mark.parametrize("longest", [3, 12, 13, 30])
def test_rows_are_those_of_a_dictionary(longest):
    """Ids of up to 12 bytes lie in their views, longer ones elsewhere."""
    rng = random.Random(longest)
    ids = {"".join(rng.choices("CDé:0", k=rng.randint(0, longest))) for _ in range(300)}
    known = {key: rng.randrange(1 << 32 - 1) for key in sorted(ids)[::2]}
    lookup = pl.DataFrame(
        {"key": list(known), "row": pl.Series(list(known.values()), dtype=pl.UInt32)}
    )
    asked = [each for each in rng.choices(sorted(ids), k=1000) for _ in range(rng.randint(1, 3))]
    column = pl.concat([pl.Series(asked[:100]), pl.Series(asked)])[7:]
    found = IdRows(lookup).find(column)
    assert found.to_list() == [known.get(each) for each in (asked[:100] + asked)[7:]]
    assert found.dtype == pl.UInt32


@pytest.mark.usefixtures("_way")
def test_an_empty_table_finds_nothing():
    lookup = pl.DataFrame(schema={"key": pl.String, "row": pl.UInt32})
    assert IdRows(lookup).find(pl.Series(["a", "b" * 20])).to_list() == [None, None]
