"""Exact counts of the real disease table."""

from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from biograft.kb.records import NameKind, NameRecord, RelationRecord
from biograft.kb.sources import Probe, read_head
from biograft.kb.sources.chinese import DISEASE_TABLE

pytestmark = pytest.mark.slow


@pytest.fixture
def reading(reading):
    return partial(reading, format="zh-alias")


def claims(path: Path) -> bool:
    return DISEASE_TABLE.recognise(Probe(path, read_head(path)))


def test_counts(shared_data, reading):
    path = shared_data("zh/medical_kg/disease_gb18030.csv.gz")
    assert claims(path)
    result = reading(path)
    assert result.log.n_read == 14_336
    assert result.log.rejected.counts == {
        "cut short in the source": 5732,
        "cells without a column, so the row is shifted": 11,
    }
    assert result.log.doubtful.counts == {"id defined twice": 4364}  # two crawls of one site
    kinds = Counter(r.kind for r in result.of(NameRecord))
    assert kinds == {NameKind.PREFERRED: 21_446, NameKind.SYNONYM: 9064}
    with_alias = {r.concept for r in result.of(NameRecord) if r.kind == NameKind.SYNONYM}
    assert (
        len(with_alias) == 4432
    )  # 4,438 cells, less five that repeat the row's name and 脑瘫's second
    assert result.counts["relations"] == len(result.of(RelationRecord)) == 154_668
    assert result.log.filtered == {"text of the web page": 30_748}
