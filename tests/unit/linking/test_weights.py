"""The weights in an encoder's folder: read as written, refused if they say nothing sound."""

from __future__ import annotations

import pytest

from biograft.errors import StoreError
from biograft.linking.index import WEIGHTS, are_weights, read_weights, write_weights


@pytest.mark.parametrize(("learned", "counts"), [(0.4, 0.4), (-0.2, 0.0)])
def test_what_is_written_is_read(tmp_path, learned, counts):
    assert read_weights(tmp_path) is None
    write_weights(tmp_path, learned, {"provenance": {"kb": "x"}})
    assert read_weights(tmp_path) == {"dense": 1.0, "lexical": counts}
    content = WEIGHTS.read(tmp_path)
    assert (content["format"], content["learned"]) == ("biograft-weights", {"lexical": learned})
    assert content["provenance"] == {"kb": "x"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"biograft_lexical_weight\.json: damaged"),
        ("{}", "states no format, so it is no search weights"),
        ('{"format": "biograft-weights", "version": 1}', r"damaged \(weights is missing\)"),
        ('{"format": "biograft-weights", "version": 1, "weights": {"dense": NaN, "lexical": 1}}',
         r"damaged \(weights are {'dense': nan"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_told_in_one_line(tmp_path, text, message):
    (tmp_path / WEIGHTS.file).write_text(text)
    with pytest.raises(StoreError, match=message) as told:
        read_weights(tmp_path)
    assert str(told.value).endswith("or remove the file: letters and vectors count alike then")
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    "value",
    [
        None,
        [1, 1],
        {"a": 1},
        {"a": 1, "b": 1, "c": 1},
        {"a": True, "b": 1},
        {"a": "1", "b": 1},
        {"a": float("inf"), "b": 1},
        {"a": -1, "b": 2},
        {"a": 0, "b": 0.0},
    ],
)
def test_what_are_no_weights(value):
    assert not are_weights(value, ["a", "b"])
    assert are_weights({"a": 0, "b": 0.5}, ["a", "b"])
