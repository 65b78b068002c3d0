"""A linker whose ranker finds names by itself needs no search, and any other does."""

from __future__ import annotations

import pytest

from biograft.errors import ConfigError
from biograft.linking import Linker
from biograft.linking.candidates import Candidate
from biograft.linking.lexical import LexicalIndex
from biograft.linking.rankers import needs_search
from biograft.linking.rerank.reranker import SearchRanker


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


def test_what_it_has_gathered_beside(kb):
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
