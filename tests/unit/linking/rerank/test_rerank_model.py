from __future__ import annotations

import numpy as np
import pytest
import torch

from biograft.errors import ConfigError, StoreError
from biograft.linking.rerank.model import CrossEncoder


@pytest.fixture
def model(bench):
    return CrossEncoder.start(bench.config())


def test_batches_of_like_length_give_what_each_pair_gives_alone(model):
    left = ["{ cold }", "fever and { cold } with cough and snow", "ice { cold }"] * 5
    right = ["Heat", "Cold ; common cold ; disease", "none of these"] * 5
    pairs, is_nil = model.pairs.tokenize(left, right), np.array([False, False, True] * 5)
    with torch.no_grad():
        model.nil_bias.fill_(3.0)
    together = model.score(pairs, is_nil)
    model.eval()
    for pair, nil, score in zip(pairs, is_nil, together, strict=True):
        with torch.no_grad():
            states = model.model(
                input_ids=torch.tensor([pair.ids]), token_type_ids=torch.tensor([pair.types])
            ).last_hidden_state
            alone = states[0, 0] @ model.head.weight[0] + model.head.bias[0] + 3.0 * bool(nil)
        assert score == pytest.approx(float(alone), abs=1e-5)


def test_scoring_drops_nothing_out_and_leaves_the_mode_as_it_was(model):
    pairs = model.pairs.tokenize(["{ cold }"], ["Heat"])
    model.train()
    scores = [model.score(pairs, np.array([False])) for _ in range(2)]
    assert scores[0] == scores[1]
    assert model.training
    assert len(model.score([], np.zeros(0, bool))) == 0


def test_the_start_follows_from_the_seed_alone(bench):
    starts = [CrossEncoder.start(bench.config(seed=seed)).head.weight for seed in (1, 1, 2)]
    assert torch.equal(starts[0], starts[1])
    assert not torch.equal(starts[0], starts[2])


def test_a_saved_model_gives_the_same_scores(model, bench, tmp_path):
    with torch.no_grad():
        model.nil_bias.fill_(1.5)
    model.save(tmp_path)
    again = CrossEncoder.load(tmp_path, bench.config())
    pairs, is_nil = (
        model.pairs.tokenize(["{ cold }"] * 2, ["Heat", "none"]),
        np.array([False, True]),
    )
    assert np.array_equal(model.score(pairs, is_nil), again.score(pairs, is_nil))
    assert again.encoder.settings == model.encoder.settings


def test_weights_that_are_no_numbers_are_refused(model, bench, tmp_path):
    with torch.no_grad():
        model.head.weight[0, 0] = float("nan")
    with pytest.raises(StoreError, match="gives NaN or infinity for 1 of 1 pairs"):
        model.score(model.pairs.tokenize(["{ cold }"], ["Heat"]), np.array([False]))
    model.save(tmp_path)
    with pytest.raises(StoreError, match=r"head.safetensors: holds NaN or infinity \(weight\)"):
        CrossEncoder.load(tmp_path, bench.config())


def test_a_head_of_another_encoder_is_refused(model, bench, tmp_path):
    model.save(tmp_path)
    (tmp_path / "head.safetensors").write_bytes(b"no tensors")
    with pytest.raises(StoreError, match=r"head.safetensors: damaged"):
        CrossEncoder.load(tmp_path, bench.config())


def test_pairs_longer_than_the_encoder_are_refused_before_training(bench):
    with pytest.raises(ConfigError, match=r"max_length: expected 3 to 64 for .* found 128"):
        CrossEncoder.start(bench.config(max_length=128))
