"""A linker whose ranker finds names by itself needs no search, and any other does."""

from __future__ import annotations

import pytest

from biograft.errors import ConfigError
from biograft.linking import (
    Calibration,
    Candidate,
    FusedSearch,
    LexicalIndex,
    Linker,
    SearchRanker,
    needs_search,
)


class Knowing:
    """Knows the answer, whatever is asked."""

    name, uses_context = "knowing", False

    def __init__(self, *, needs_search=False):
        self.needs_search, self.pool = needs_search, []

    def in_languages(self, languages):
        return self

    def rank_candidates(self, texts, pool, contexts):
        self.pool.append(pool.rows.shape)
        return [[Candidate("D6", "Cold", "Cold", 1.0)] for _ in texts]


def test_nothing_is_searched_for_it(kb):
    ranker = Knowing()
    linker = Linker(kb, None, ranker=ranker)
    assert (linker.search, linker.score_source) == (None, "knowing")
    assert [m.concept for m in linker("heart attack, breast cancer").mentions] == ["D6", "D6"]
    assert ranker.pool == [(2, 0)]


def test_a_ranker_may_use_the_candidate_pool(kb):
    ranker = Knowing(needs_search=True)
    Linker(kb, LexicalIndex.build(kb), ranker=ranker).link_mentions(["cold"])
    assert ranker.pool[0][1] > 0


def test_others_need_a_search(kb):
    assert needs_search(None)
    assert needs_search(SearchRanker(kb, {"lexical": 1.0}))
    assert not needs_search(Knowing())
    for ranker in (None, SearchRanker(kb, {"lexical": 1.0}), Knowing(needs_search=True)):
        with pytest.raises(ConfigError, match="search: none given"):
            Linker(kb, None, ranker=ranker)


class Sceptic(SearchRanker):
    """Takes what is not quite the name for nothing."""

    nil_below = 0.95


@pytest.fixture
def linker_of(kb):
    search = FusedSearch([LexicalIndex.build(kb)])

    def build(kind=Sceptic, calibration=None, **settings):
        ranker = kind(kb, search.weights)
        return Linker(
            kb,
            search,
            ranker=ranker,
            calibration=calibration,
            config=Linker.open(kb, **settings).config,
        )

    return build


def answer(linker, text):
    candidates = tuple(linker.link_mentions([text])[0])
    return None if linker.nil.is_nil(text, candidates[0]) else candidates[0].concept


def test_below_its_own_limit_a_ranker_gives_nil(linker_of):
    assert answer(linker_of(), "heart attack") == "D4"
    assert answer(linker_of(), "hart attack") is None
    assert answer(linker_of(SearchRanker), "hart attack") == "D4"


def test_a_threshold_or_a_calibration_comes_first(linker_of):
    assert answer(linker_of(threshold=0.1), "hart attack") == "D4"
    calibration = Calibration("platt", ((1.0, 0.0),))
    assert answer(linker_of(calibration=calibration), "hart attack") == "D4"
