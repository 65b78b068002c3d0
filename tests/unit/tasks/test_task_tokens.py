"""Text as tokens: whole however long, offsets of the unaltered text, framed as encoders want."""

from __future__ import annotations

import pytest

from biograft.errors import ConfigError
from biograft.nn import TextEncoder
from biograft.nn.settings import EncoderSettings
from biograft.tasks.tokens import TaskTokenizer


def test_a_text_is_read_whole_and_framed_as_the_tokenizer_does(load):
    encoder = load(max_length=12)
    tokenizer = TaskTokenizer(encoder)
    [tokens] = tokenizer.read(["fever and pain " * 30])
    assert len(tokens.ids) == 90
    assert (tokenizer.room, tokenizer.n_before) == (10, 1)
    [short] = tokenizer.read(["Fever and"])
    assert tokenizer.frame(short.ids) == encoder.tokenizer.encode("Fever and")
    assert short.offsets.tolist() == [[0, 5], [6, 9]]
    assert tokenizer.read([]) == []


def test_lower_case_moves_no_offset(load):
    """One letter of Turkish becomes two when lowercased; it is left as it is."""
    plain = load()
    settings = EncoderSettings(pooling="mean", max_length=32, lower=True)
    encoder = TextEncoder(plain.model, plain.tokenizer, settings, "lowering")
    text = "İ FEVER"
    [tokens] = TaskTokenizer(encoder).read([text])
    assert text[slice(*tokens.offsets[-1])] == "FEVER"


def test_a_tokenizer_without_offsets_is_refused(load):
    class Slow:
        """What a tokenizer in Python says of itself."""

        is_fast = False

    encoder = load()
    encoder.tokenizer = Slow()
    with pytest.raises(ConfigError, match="does not say where in the text tokens stand"):
        TaskTokenizer(encoder)
