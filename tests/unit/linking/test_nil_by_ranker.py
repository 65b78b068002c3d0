"""A ranker may know by itself when nothing fits; a threshold or a calibration comes first."""

from __future__ import annotations

import pytest

from biograft.linking import Linker
from biograft.linking.calibration import Calibration
from biograft.linking.fusion import FusedSearch
from biograft.linking.lexical import LexicalIndex
from biograft.linking.rerank.reranker import SearchRanker


class Sceptic(SearchRanker):
    """Takes what is not quite the name for nothing."""

    nil_below = 0.95


@pytest.fixture
def linker_of(kb):
    search = FusedSearch([LexicalIndex.build(kb)])

    def build(kind=Sceptic, calibration=None, **settings):
        ranker = kind(kb, search.weights)
        return Linker(kb, search, ranker=ranker, calibration=calibration,
                      config=Linker.open(kb, **settings).config)  # fmt: skip

    return build


def answer(linker, text):
    return linker._linked(*asked(text), tuple(linker.link_mentions([text])[0])).concept


def asked(text):
    from biograft.documents import Mention

    return Mention(0, len(text), text), text


def test_below_its_own_limit_a_ranker_gives_nil(linker_of):
    assert answer(linker_of(), "heart attack") == "D4"
    assert answer(linker_of(), "hart attack") is None
    assert answer(linker_of(SearchRanker), "hart attack") == "D4"


def test_a_threshold_or_a_calibration_comes_first(linker_of):
    assert answer(linker_of(threshold=0.1), "hart attack") == "D4"
    calibration = Calibration("platt", ((1.0, 0.0),))
    assert answer(linker_of(calibration=calibration), "hart attack") == "D4"
