"""What may be configured, and what is said of what may not."""

from __future__ import annotations

import subprocess
import sys

import pytest

from biograft.config import from_mapping
from biograft.errors import ConfigError
from biograft.training.linkers import FinetuneConfig


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"loss": "margin"},
            "loss: expected one of marginal, bank, contrastive, found 'margin'; did",
        ),
        ({"refresh": "never"}, "refresh: expected one of reachable, full, found 'never'"),
        ({"missing_gold": "drop"}, "missing_gold: expected one of add, skip, found 'drop'"),
        ({"k": 1}, "k: expected at least 2, found 1"),
        ({"reach": 0}, "reach: expected at least 1, found 0"),
        ({"encode_batch": 0}, "encode_batch: expected at least 1, found 0"),
    ],
)
def test_a_configuration_that_cannot_be(options, message):
    with pytest.raises(ConfigError, match=message):
        FinetuneConfig(**options)


def test_a_table_keeps_the_defaults_of_fine_tuning():
    config = from_mapping(
        FinetuneConfig,
        {"training": {"epochs": 3}, "marginal": {"similarity": "dot"}, "contrastive": {}},
    )
    assert (config.training.epochs, config.training.batch_size) == (3, 16)
    assert config.training.learning_rate == 1e-5
    assert config.marginal.similarity == "dot"
    with pytest.raises(ConfigError, match=r"training\.: unknown key 'epoch'|unknown key 'epoch'"):
        from_mapping(FinetuneConfig, {"training": {"epoch": 3}})
    with pytest.raises(ConfigError, match="batch_size: expected"):
        from_mapping(FinetuneConfig, {"training": {"batch_size": 0}})


def test_configuring_needs_no_torch():
    script = """
import sys
from biograft.training.linkers import FinetuneConfig
FinetuneConfig()
print("torch" in sys.modules)
sys.modules["torch"] = None
from biograft.errors import MissingExtraError
try:
    from biograft.training.linkers import finetune_encoder
except MissingExtraError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    first, second = done.stdout.splitlines()
    assert first == "False"
    assert "pip install 'biograft[models]'" in second
