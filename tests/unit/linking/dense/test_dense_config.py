import pytest

from biograft.config import from_mapping
from biograft.errors import ConfigError
from biograft.linking import DenseConfig


def test_comes_from_plain_values():
    config = from_mapping(DenseConfig, {"storage": "int8", "languages": ["en", "zh"]})
    assert (config.storage, config.languages, config.similarity) == ("int8", ("en", "zh"), "cosine")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"storage": "int4"}, "storage: expected one of float32, .*, int8, found 'int4'"),
        ({"similarity": "l2"}, "similarity: expected one of cosine, dot, found 'l2'"),
        ({"batch_size": 0}, "batch_size: expected at least 1, found 0"),
        ({"quantise": "int8"}, "unknown key 'quantise'"),
    ],
)
def test_wrong_values_are_named(values, message):
    with pytest.raises(ConfigError, match=message):
        from_mapping(DenseConfig, values)
