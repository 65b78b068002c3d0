"""What may be configured of a ranker."""

from __future__ import annotations

import pytest

from biograft.errors import ConfigError
from biograft.linking.supervised import RankerConfig


@pytest.mark.parametrize(
    ("field", "value", "least"),
    [("n_names", 0, 1), ("folds", 1, 2), ("hidden", 0, 1), ("epochs", 0, 1), ("ensemble", -1, 1)],
)
def test_counts_have_a_least(field, value, least):
    with pytest.raises(ConfigError, match=rf"{field}: expected at least {least}, found {value}"):
        RankerConfig(**{field: value})


@pytest.mark.parametrize("value", [-0.1, 1.0, float("nan")])
@pytest.mark.parametrize("field", ["learning_rate", "weight_decay"])
def test_rates_are_shares(field, value):
    with pytest.raises(ConfigError, match=rf"{field}: expected 0 to 1, found {value}"):
        RankerConfig(**{field: value})
