"""The average of encoders, against the mean of their weights computed by hand."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file
from tiny_models import tiny_encoder_folder
from typer.testing import CliRunner

from biograft.cli import app
from biograft.errors import ConfigError, OutputError
from biograft.linking import read_weights, write_weights
from biograft.models import TextEncoder
from biograft.training.linkers import average_encoders

NAMES = ["heart attack", "kidney stone", "brain tumour"]


@pytest.fixture
def encoders(tmp_path):
    """Three encoders of one kind with different weights."""
    start = tiny_encoder_folder(tmp_path / "start", NAMES)
    folders = []
    for seed in range(3):
        encoder = TextEncoder.from_pretrained(start, pooling="mean")
        torch.manual_seed(seed)
        with torch.no_grad():
            for weight in encoder.model.parameters():
                weight.add_(torch.randn_like(weight))
        encoder.save_pretrained(tmp_path / f"seed-{seed}")
        folders.append(tmp_path / f"seed-{seed}")
    return folders


def test_every_weight_is_the_mean(encoders, tmp_path):
    facts = average_encoders(encoders, tmp_path / "mean")
    parts = [load_file(folder / "model.safetensors") for folder in encoders]
    mean = load_file(tmp_path / "mean" / "model.safetensors")
    assert mean.keys() == parts[0].keys()
    for key, value in mean.items():
        expected = torch.stack([part[key].double() for part in parts]).mean(0).float()
        assert torch.allclose(value, expected, atol=1e-7)
    assert facts["n_encoders"] == len(set(facts["encoders"])) == 3
    assert TextEncoder.from_pretrained(tmp_path / "mean").encode(NAMES).shape[0] == 3
    with pytest.raises(OutputError):
        average_encoders(encoders, tmp_path / "mean")


def test_lexical_weights_are_averaged_only_if_all_have_one(encoders, tmp_path):
    for folder, weight in zip(encoders, (0.5, 1.0, 0.0), strict=True):
        write_weights(folder, weight, {})
    average_encoders(encoders, tmp_path / "mean")
    assert read_weights(tmp_path / "mean") == {"dense": 1.0, "lexical": 0.5}
    (encoders[1] / "biograft_lexical_weight.json").unlink()
    facts = average_encoders(encoders, tmp_path / "mean", overwrite=True)
    assert read_weights(tmp_path / "mean") is None
    assert "lexical_weight" not in facts


def test_encoders_that_differ_are_refused(encoders, tmp_path):
    with pytest.raises(ConfigError, match="at least two"):
        average_encoders(encoders[:1], tmp_path / "mean")
    other = TextEncoder.from_pretrained(encoders[0], pooling="cls")
    other.save_pretrained(tmp_path / "cls")
    with pytest.raises(ConfigError, match="settings differ"):
        average_encoders([encoders[0], tmp_path / "cls"], tmp_path / "mean")
    words = tiny_encoder_folder(tmp_path / "words", ["other", "words"])
    TextEncoder.from_pretrained(words, pooling="mean").save_pretrained(tmp_path / "others")
    with pytest.raises(ConfigError, match="tokenizers differ"):
        average_encoders([encoders[0], tmp_path / "others"], tmp_path / "mean")
    assert not (tmp_path / "mean").exists()


def test_the_command(encoders, tmp_path):
    arguments = ["checkpoint", "average", *map(str, encoders), "-o", str(tmp_path / "mean")]
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["n_encoders"] == 3
