from __future__ import annotations

import pytest

from biograft.linking.queries import Context
from biograft.linking.rerank.model import CandidatePairTokenizer
from biograft.nn import TextEncoder


@pytest.fixture(scope="module")
def encoder(bench):
    return TextEncoder.from_pretrained(bench.config().encoder, max_length=32)


def words_of(encoder, ids):
    return encoder.tokenizer.convert_ids_to_tokens(ids)


def test_both_texts_are_read_and_told_apart(encoder):
    (pair,) = CandidatePairTokenizer(encoder, 120).tokenize(["fever { cold }"], ["Heat"])
    assert words_of(encoder, pair.ids) == [
        *("[CLS]", "fever", "{", "cold", "}", "[SEP]", "heat", "[SEP]")
    ]
    assert pair.types == [0] * 6 + [1] * 2


def test_what_is_too_long_is_cut_from_the_candidate(encoder):
    (pair,) = CandidatePairTokenizer(encoder, 120).tokenize(["{ cold }"], ["cough " * 90])
    assert len(pair) == 32
    assert words_of(encoder, pair.ids)[:5] == ["[CLS]", "{", "cold", "}", "[SEP]"]
    assert words_of(encoder, pair.ids)[-1] == "[SEP]"


@pytest.mark.parametrize("n_characters", [0, 40, 10_000])
def test_a_mention_stays_whole_between_as_much_context_as_there_is_room_for(encoder, n_characters):
    tokenizer = CandidatePairTokenizer(encoder, n_characters)
    text = "fever " * 4000 + "cold" + " cough" * 4000
    contexts = [Context(text, 24000, 24004), Context("cold", 0, 4), Context()]
    marked = tokenizer.mark_mentions([("cold", context) for context in contexts])
    assert marked[1:] == ["{ cold }"] * 2
    assert "{ cold }" in marked[0]
    n_tokens = len(encoder.tokenizer.tokenize(marked[0]))
    assert n_tokens <= tokenizer.context_room == 17
    assert n_tokens >= (3 if n_characters == 0 else 9)


def test_of_a_mention_that_is_too_long_the_beginning_is_shown(encoder):
    text = "a cold " + "winter " * 400
    mention = text[2:].strip()
    mentions = [(mention, Context(text, 2, 2 + len(mention))), (mention, Context())]
    tokenizer = CandidatePairTokenizer(encoder, 50)
    for marked in tokenizer.mark_mentions(mentions):
        assert marked.startswith("{ cold winter")
        assert marked.endswith("}")
        assert len(encoder.tokenizer.tokenize(marked)) <= tokenizer.context_room
        assert len(tokenizer.tokenize([marked], ["Heat"])[0]) <= 32


def test_many_marks_without_a_blank_come_to_an_end(encoder):
    text = "🤧" * 500
    (marked,) = CandidatePairTokenizer(encoder, 120).mark_mentions(
        [("x" * 500, Context(text, 100, 300))]
    )
    assert len(encoder.tokenizer.tokenize(marked)) <= 17


def test_a_batch_is_filled_up_to_the_longest(encoder):
    tokenizer = CandidatePairTokenizer(encoder, 120)
    pairs = tokenizer.tokenize(["{ cold }", "fever { cold }"], ["Heat", "Cold Temperature"])
    batch = tokenizer.pad(pairs)
    assert batch["input_ids"].shape == (2, 9)
    assert batch["attention_mask"].sum(1).tolist() == [7, 9]
    assert batch["token_type_ids"].tolist() == [[0] * 5 + [1] * 2 + [0] * 2, [0] * 6 + [1] * 3]
    assert tokenizer.tokenize([], []) == []
