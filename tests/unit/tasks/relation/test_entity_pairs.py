"""Examples as sequences: indicators as single tokens, and texts that are too long."""

from __future__ import annotations

import pytest

from biograft.corpus.tasks.records import RelationExample
from biograft.documents import Mention
from biograft.errors import ConfigError
from biograft.tasks.relation import PairReader, add_indicators, indicators_of


def example(text, first, second, kinds=("drug", "gene")):
    places = [(text.index(name), text.index(name) + len(name)) for name in (first, second)]
    mentions = [
        Mention(*place, name, type=kind)
        for place, name, kind in zip(places, (first, second), kinds, strict=True)
    ]
    return RelationExample(text, *mentions, "x")


def shown(encoder, pair):
    return encoder.tokenizer.convert_ids_to_tokens(list(pair.tokens))


@pytest.fixture
def reading(load):
    """Read one example with indicators known: ``reading(example, max_length=12)``."""

    def read(one, max_length=32, order="text"):
        encoder = load(max_length)
        add_indicators(encoder, indicators_of([one]))
        [pair] = PairReader(encoder, order).read([one])
        return encoder, pair

    return read


def test_indicators_are_single_tokens_in_place_of_the_mentions(reading):
    encoder, pair = reading(
        example("no aspirin after heart attack today", "aspirin", "heart attack")
    )
    assert shown(encoder, pair) == ["[CLS]", "no", "@DRUG$", "after", "@GENE$", "today", "[SEP]"]
    assert pair.places == (2, 4)
    assert not pair.cut_around


def test_mentions_that_overlap_share_an_indicator(reading):
    encoder, pair = reading(example("no heart attack", "heart attack", "attack", ("drug", "drug")))
    assert shown(encoder, pair) == ["[CLS]", "no", "@DRUG-DRUG$", "[SEP]"]
    assert pair.places == (2, 2)


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (
            example("no aspirin after heart attack today", "aspirin", "heart attack"),
            "[CLS] no @DRUG$ aspirin after @GENE$ heart attack today [SEP]",
        ),
        (
            example("no heart attack", "heart attack", "attack", ("drug", "drug")),
            "[CLS] no @DRUG-DRUG$ heart attack [SEP]",
        ),
    ],
)
def test_names_may_stay_behind_their_indicators(load, one, expected):
    encoder = load(32)
    add_indicators(encoder, indicators_of([one]))
    [pair] = PairReader(encoder, "text", named=True).read([one])
    tokens = shown(encoder, pair)
    assert " ".join(tokens) == expected
    assert all(tokens[place].startswith("@") for place in pair.places)


def test_the_order_of_text_or_of_roles(reading):
    turned = example("fever after aspirin", "aspirin", "fever")
    assert reading(turned)[1].places == (1, 3)
    assert reading(turned, order="roles")[1].places == (3, 1)


def test_an_indicator_that_training_did_not_know_has_several_tokens(load):
    encoder = load()
    [pair] = PairReader(encoder, "text").read([example("aspirin after fever", "aspirin", "fever")])
    assert len(pair.tokens) > 5
    tokens = shown(encoder, pair)
    place = tokens.index("after")
    assert pair.places == (1, place + 1)


def test_what_is_too_long_loses_its_end_while_both_indicators_stay(reading):
    _, pair = reading(example("aspirin after fever " + "pain " * 20, "aspirin", "fever"), 12)
    assert len(pair.tokens) == 12
    assert pair.places == (1, 3)
    assert not pair.cut_around


@pytest.mark.parametrize("between", [2, 30])
@pytest.mark.parametrize("behind", [0, 20])
def test_what_is_too_long_is_cut_around_indicators_behind_its_end(reading, between, behind):
    text = " ".join(["no"] * 20 + ["aspirin"] + ["after"] * between + ["fever"] + ["pain"] * behind)
    encoder, pair = reading(example(text, "aspirin", "fever"), 12)
    tokens = shown(encoder, pair)
    assert len(tokens) == 12
    assert pair.cut_around
    assert [tokens[place] for place in pair.places] == ["@DRUG$", "@GENE$"]
    if between == 2:
        assert tokens.count("after") == 2
        assert tokens.count("no") == (3 if behind else 6)
    else:
        assert tokens.count("after") == 8


def test_an_encoder_that_reads_too_little_is_refused(load):
    with pytest.raises(ConfigError, match="leaves room for 6 tokens"):
        PairReader(load(8), "text")
