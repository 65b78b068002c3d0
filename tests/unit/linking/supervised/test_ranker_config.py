"""What may be configured of a ranker."""

from __future__ import annotations

import pytest

from biograft.errors import ConfigError
from biograft.linking import RankerConfig


@pytest.mark.parametrize(
    ("field", "value", "minimum"),
    [("n_names", 0, 1), ("folds", 1, 2), ("hidden", 0, 1), ("epochs", 0, 1), ("ensemble", -1, 1)],
)
def test_counts_have_a_minimum(field, value, minimum):
    with pytest.raises(ConfigError, match=rf"{field}: expected at least {minimum}, found {value}"):
        RankerConfig(**{field: value})


@pytest.mark.parametrize("value", [-0.1, 1.0, float("nan")])
@pytest.mark.parametrize("field", ["learning_rate", "weight_decay"])
def test_rates_are_fractions(field, value):
    message = f"{field}: expected a number from 0 to below 1, found {value}"
    with pytest.raises(ConfigError, match=message):
        RankerConfig(**{field: value})
