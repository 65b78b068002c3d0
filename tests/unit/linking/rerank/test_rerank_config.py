from __future__ import annotations

import pytest

from biograft.config import from_mapping
from biograft.errors import ConfigError
from biograft.linking import RerankConfig


def test_a_table_of_training_keeps_what_suits_re_rankers_where_it_says_nothing():
    config = from_mapping(RerankConfig, {"encoder": "e", "training": {"learning_rate": 1}})
    assert config.training.learning_rate == 1
    assert (config.training.batch_size, config.training.schedule) == (16, "linear")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"n_candidates": 0}, "n_candidates: expected at least 1, found 0"),
        ({"max_length": 15}, "max_length: expected at least 16, found 15"),
        ({"context_characters": -1}, "context_characters: expected at least 0, found -1"),
        ({"n_synonyms": -1}, "n_synonyms: expected at least 0, found -1"),
        ({"held_out": 1.0}, "held_out: expected a number above 0 and below 1, found 1.0"),
        ({"nil_text": " "}, "nil_text: expected words, found none"),
        ({"training": {"epochs": 0}}, "epochs: expected at least 1, found 0"),
        ({"encodr": "e"}, "unknown key 'encodr'; did you mean 'encoder'?"),
    ],
)
def test_what_is_out_of_range_is_refused_by_name(values, message):
    with pytest.raises(ConfigError) as caught:
        from_mapping(RerankConfig, {"encoder": "e", **values})
    assert str(caught.value) == message
