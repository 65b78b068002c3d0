"""The folder of a trained ranker: opened as it was saved, refused if damaged or foreign."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from manifests import reseal

from biograft.errors import OutputError, StoreError
from biograft.linking import (
    FusedSearch,
    LexicalIndex,
    Linker,
    Network,
    TrainedRanker,
    load_ranker,
    load_trained_ranker,
)
from biograft.training.linkers import train_network

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
    reseal(path)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"version": 99}, "trained ranker of version 99, this biograft reads version 1"),
        ({"format": "other"}, "no trained ranker but 'other'"),
        ({"features": ["one"]}, "trained with other features"),
        ({"features": None}, "damaged"),
        ({"generators": 3}, "damaged"),
        ({"generators": ["a", "b"]}, "trained with other features"),
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


@pytest.mark.parametrize("name", ["inner.npy", "mean.npy"])
def test_weights_of_another_ranker_are_refused(ward, saved, name):
    """They had the right shape, and other answers came without a word."""
    np.save(saved / name, np.load(saved / name) + 1)
    with pytest.raises(StoreError, match=rf"{name}: damaged .* train the linker again"):
        load_trained_ranker(saved, ward.kb)


def test_weights_that_are_no_numbers_are_refused(ward, saved):
    weights = np.load(saved / "outer.npy")
    weights[0, 0] = np.nan
    np.save(saved / "outer.npy", weights)
    with pytest.raises(StoreError, match="hold NaN"):
        load_ranker(saved, ward.kb)


N_FEATURES, HIDDEN, NETWORKS = 5, 4, 3


@pytest.fixture
def parts():
    torch.manual_seed(0)
    return [
        (torch.nn.Linear(N_FEATURES, HIDDEN), torch.nn.Linear(HIDDEN, 1, bias=False))
        for _ in range(NETWORKS)
    ]


@pytest.fixture
def network(parts):
    draw = np.random.default_rng(0)
    return Network(
        draw.normal(size=N_FEATURES).astype(np.float32),
        draw.uniform(0.5, 2, N_FEATURES).astype(np.float32),
        np.stack([inner.weight.detach().numpy() for inner, _ in parts]),
        np.stack([inner.bias.detach().numpy() for inner, _ in parts]),
        np.stack([outer.weight.detach().numpy()[0] for _, outer in parts]),
    )


def test_scores_are_the_mean_of_those_of_torch(network, parts):
    features = np.random.default_rng(1).normal(size=(7, N_FEATURES)).astype(np.float32)
    given = torch.from_numpy((features - network.mean) / network.scale)
    with torch.no_grad():
        scores = [outer(torch.nn.functional.gelu(inner(given)))[:, 0] for inner, outer in parts]
    np.testing.assert_allclose(network.score(features), torch.stack(scores).mean(0), atol=1e-6)
    assert network.score(features[:0]).shape == (0,)


def test_what_is_saved_is_loaded(network, tmp_path):
    network.save(tmp_path)
    features = np.random.default_rng(1).normal(size=(7, N_FEATURES)).astype(np.float32)
    loaded = Network.load(tmp_path, N_FEATURES)
    assert loaded.score(features).tolist() == network.score(features).tolist()


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("inner", np.full((NETWORKS, HIDDEN, N_FEATURES), np.nan, np.float32), "hold NaN"),
        ("scale", np.zeros(N_FEATURES, np.float32), "a scale of 0"),
        ("scale", np.ones(N_FEATURES + 1, np.float32), "wrong shapes"),
        ("mean", np.zeros(1, np.float32), "wrong shapes"),
        ("outer", np.zeros((NETWORKS, HIDDEN + 1), np.float32), "wrong shapes"),
        ("outer", np.zeros(HIDDEN, np.float32), "expected 2 axes"),
        ("inner_bias", np.zeros(HIDDEN, np.float32), "expected 2 axes"),
        ("outer", np.array([["a"] * HIDDEN] * NETWORKS), "of float32, found"),
    ],
)
def test_weights_that_do_not_fit_are_refused(network, tmp_path, name, value, problem):
    network.save(tmp_path)
    np.save(tmp_path / f"{name}.npy", value)
    with pytest.raises(StoreError, match=problem):
        Network.load(tmp_path, N_FEATURES)


@pytest.mark.parametrize("content", [b"", b"cut", None])
def test_damaged_files_are_refused_network(network, tmp_path, content):
    network.save(tmp_path)
    if content is None:
        (tmp_path / "mean.npy").unlink()
    else:
        (tmp_path / "mean.npy").write_bytes(content)
    with pytest.raises(StoreError, match=r"damaged .*train the linker again"):
        Network.load(tmp_path, N_FEATURES)


def test_a_feature_without_scale_is_left_out(network, tmp_path):
    network.scale[2] = np.inf
    network.save(tmp_path)
    features = np.zeros((2, N_FEATURES), np.float32)
    features[0, 2] = 1e6
    scores = Network.load(tmp_path, N_FEATURES).score(features)
    assert scores[0] == scores[1]
    assert np.isfinite(scores).all()


def test_other_features_are_refused(network, tmp_path):
    network.save(tmp_path)
    with pytest.raises(StoreError, match="wrong shapes"):
        Network.load(tmp_path, N_FEATURES + 1)
