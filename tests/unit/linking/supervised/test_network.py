"""The network in numpy gives what torch gives, and refuses files that do not fit."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from biograft.errors import StoreError
from biograft.linking.supervised.ranker import Network

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
        ("outer", np.zeros(HIDDEN, np.float32), "wrong shapes"),
        ("inner_bias", np.zeros(HIDDEN, np.float32), "wrong shapes"),
        ("outer", np.array([["a"] * HIDDEN] * NETWORKS), "wrong type"),
    ],
)
def test_weights_that_do_not_fit_are_refused(network, tmp_path, name, value, problem):
    network.save(tmp_path)
    np.save(tmp_path / f"{name}.npy", value)
    with pytest.raises(StoreError, match=problem):
        Network.load(tmp_path, N_FEATURES)


@pytest.mark.parametrize("content", [b"", b"cut", None])
def test_damaged_files_are_refused(network, tmp_path, content):
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
