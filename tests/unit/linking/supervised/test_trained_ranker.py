"""The folder of a trained ranker: opened as it was saved, refused if damaged or foreign."""

from __future__ import annotations

import json

import numpy as np
import pytest

from biograft.errors import OutputError, StoreError
from biograft.linking import Linker
from biograft.linking.fusion import FusedSearch
from biograft.linking.lexical import LexicalIndex
from biograft.linking.rankers import load_ranker
from biograft.linking.supervised import TrainedRanker, load_trained_ranker, train_network

TEXTS = ["ms", "cold", "failing kidney", "qqqq", ""]


@pytest.fixture
def ranker(ward, config):
    trained = train_network(ward.kb, ward.search, ward.mentions, config)
    return TrainedRanker(ward.kb, trained.network, trained.memory, ["lexical"])


@pytest.fixture
def saved(ranker, config, tmp_path):
    ranker.save(tmp_path / "M", config, {"n_mentions": 1})
    return tmp_path / "M"


def test_what_is_saved_ranks_the_same(ward, ranker, saved, config):
    opened = load_ranker(saved, ward.kb)
    pool = ward.search.collect(TEXTS, 10)
    assert opened.rank_candidates(TEXTS, pool, []) == ranker.rank_candidates(TEXTS, pool, [])
    manifest = json.loads((saved / "manifest.json").read_text())
    assert manifest["config"]["n_names"] == config.n_names
    assert manifest["report"] == {"n_mentions": 1}
    with pytest.raises(OutputError, match="exists already"):
        ranker.save(saved, config, {})


def test_one_candidate_for_a_concept_best_first_with_its_best_name(ward, ranker):
    (found,) = ranker.rank_candidates(["ms"], ward.search.collect(["ms"], 10), [])
    assert found[0].concept == "SCLEROSIS"
    assert len({c.concept for c in found}) == len(found)
    assert [c.score for c in found] == sorted((c.score for c in found), reverse=True)
    assert found[0].name == "ms"
    assert found[0].evidence[0].generator == "lexical"


def test_nothing_found_gives_no_candidates(ward, ranker):
    assert ranker.rank_candidates(["qqqq"], ward.search.collect(["qqqq"], 5), []) == [[]]


def test_a_linker_uses_it(ward, saved):
    linker = Linker(ward.kb, ward.search, ranker=load_ranker(saved, ward.kb))
    assert linker("The patient has ms.").mentions[0].concept == "SCLEROSIS"
    assert linker.score_source.endswith(" ranker")


def test_another_store_is_ranked_by_what_it_knows(ward, saved, store_of):
    other = store_of([{"id": "SCLEROSIS", "name": "ms"}, {"id": "NEW", "name": "ms"}], "other")
    search = FusedSearch([LexicalIndex.build(other)])
    linker = Linker(other, search, ranker=load_trained_ranker(saved, other))
    assert linker.link_mentions(["ms"])[0][0].concept == "SCLEROSIS"


def test_an_index_of_another_kind_is_refused(ward, ranker):
    class Other(LexicalIndex):
        name = "other"

    search = FusedSearch([LexicalIndex.build(ward.kb), Other.build(ward.kb)])
    with pytest.raises(StoreError, match="lexical find, the index has lexical and other"):
        ranker.rank_candidates(["ms"], search.collect(["ms"], 5), [])


def change(path, **values):
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"version": 99}, "trained ranker of version 99, this biograft reads version 1"),
        ({"format": "other"}, "no trained ranker but 'other'"),
        ({"features": ["one"]}, "made for other features"),
        ({"features": None}, "damaged"),
        ({"generators": 3}, "damaged"),
        ({"generators": ["a", "b"]}, "made for other features"),
    ],
)
def test_a_manifest_that_is_not_ours_is_refused(ward, saved, values, problem):
    change(saved / "manifest.json", **values)
    with pytest.raises(StoreError, match=problem):
        load_trained_ranker(saved, ward.kb)


@pytest.mark.parametrize("name", ["manifest.json", "memory.json"])
@pytest.mark.parametrize("content", ["", "{", "[1]", None])
def test_damaged_files_are_refused(ward, saved, name, content):
    if content is None:
        (saved / name).unlink()
    else:
        (saved / name).write_text(content)
    with pytest.raises(StoreError, match=rf"{name}.* train the linker again"):
        load_trained_ranker(saved, ward.kb)


@pytest.mark.parametrize("memory", [{}, {"texts": 3, "concepts": {}}, {"texts": {"a": 1}}])
def test_a_damaged_memory_is_refused(ward, saved, memory):
    (saved / "memory.json").write_text(json.dumps(memory))
    with pytest.raises(StoreError, match="damaged"):
        load_trained_ranker(saved, ward.kb)


def test_weights_that_are_no_numbers_are_refused(ward, saved):
    weights = np.load(saved / "outer.npy")
    weights[0, 0] = np.nan
    np.save(saved / "outer.npy", weights)
    with pytest.raises(StoreError, match="hold NaN"):
        load_ranker(saved, ward.kb)
