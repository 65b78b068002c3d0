"""The encoder of letters: made without a download, the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest

from biograft.nn import TextEncoder
from biograft.nn.scratch import make_character_encoder

NAMES = ["Heart attack", "心肌梗死", "ﬁbrosis"]


@pytest.fixture
def make(tmp_path):
    def make(name, **options):
        make_character_encoder(NAMES, tmp_path / name, width=16, layers=1, **options)
        return TextEncoder.from_pretrained(tmp_path / name, pooling="mean")

    return make


def test_every_character_of_the_names_is_a_token(make):
    encoder = make("a")
    tokens = encoder.tokenize(["HEART fib", "心肌"])["input_ids"].tolist()
    known = encoder.tokenizer.convert_ids_to_tokens(tokens[0])
    assert known == ["[CLS]", *"heart fib", "[SEP]"]
    assert encoder.tokenizer.convert_ids_to_tokens(tokens[1])[:4] == ["[CLS]", "心", "肌", "[SEP]"]
    assert "[UNK]" in encoder.tokenizer.convert_ids_to_tokens(
        encoder.tokenize(["骨"])["input_ids"][0].tolist()
    )


def test_the_same_seed_makes_the_same_encoder(make):
    first, again, other = (make(name).encode(NAMES) for name in ("a", "b", "c"))
    assert first.shape == (3, 16)
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first, other)
    assert (make("d", seed=1).encode(NAMES) != first).any()
