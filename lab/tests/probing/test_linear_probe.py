"""The linear probe finds what is linear, and nothing in noise."""

from __future__ import annotations

import numpy as np

from biograft_lab.probing.linear_probe import LinearProbe


def test_a_linear_rule_is_found_and_noise_is_not():
    rng = np.random.default_rng(0)
    features = (100 + 5 * rng.normal(size=(600, 8))).astype(np.float32)
    labels = features[:, 2] - features[:, 5] > 1
    probe = LinearProbe.fit(features[:400], labels[:400])
    assert ((probe.scores(features[400:]) > 0) == labels[400:]).mean() > 0.95
    noise = rng.random(600) < 0.5
    probe = LinearProbe.fit(features[:400], noise[:400])
    assert 0.4 < ((probe.scores(features[400:]) > 0) == noise[400:]).mean() < 0.6


def test_the_gradient_is_zero_at_the_optimum():
    rng = np.random.default_rng(1)
    features = rng.normal(size=(200, 3)).astype(np.float32)
    labels = rng.random(200) < 1 / (1 + np.exp(-features[:, 0]))
    probe = LinearProbe.fit(features, labels, l2=2.0)
    x = (features - probe.mean.numpy()) / probe.scale.numpy()
    error = 1 / (1 + np.exp(-probe.scores(features))) - labels
    assert np.abs(x.T @ error + 2.0 * probe.weights.numpy()).max() < 0.1
    assert abs(error.sum()) < 0.1
