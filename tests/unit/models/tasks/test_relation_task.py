"""Relation extraction: markers, truncation, training on a toy set, metrics."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from biograft.models.tasks import RelationConfig, RelationModel
from biograft.text import RelationExample
from biograft.text.documents import Mention
from biograft.training.tasks import fit


@pytest.fixture
def start(load, relations, training):
    """Make a model that has learnt nothing: ``start(epochs=3)``."""

    def make(seed=1, **values):
        torch.manual_seed(seed)
        config = RelationConfig(training=training(**values))
        return RelationModel.from_examples(load(), config, relations)

    return make


def test_training_on_a_toy_set(start, relations, tmp_path):
    model = start(epochs=30)
    assert (model.labels, model.positive) == (("false", "effect"), ("effect",))
    fitted = fit(model, relations, relations, tmp_path / "run", seed=1)
    assert fitted.report.micro.f1 == 1.0
    assert [answer.label for answer in model.predict(relations)] == [e.label for e in relations]


def test_new_rows_follow_from_the_seed_and_old_ones_stay(start, load):
    def table(model):
        return model.network.model.get_input_embeddings().weight.detach()

    old = load().model.get_input_embeddings().weight
    first, again, other = table(start(1)), table(start(1)), table(start(2))
    n_old = len(old)
    assert len(first) == n_old + 2
    assert torch.equal(first[:n_old], old)
    assert torch.equal(first, again)
    assert not torch.equal(first[n_old:], other[n_old:])


def example(text, first, second, kinds=("drug", "gene")):
    positions = [(text.index(name), text.index(name) + len(name)) for name in (first, second)]
    mentions = [
        Mention(*position, name, type=kind)
        for position, name, kind in zip(positions, (first, second), kinds, strict=True)
    ]
    return RelationExample(text, *mentions, "x")


@pytest.fixture
def reading(load):
    """Read one example with markers known: its tokens and how it was read."""

    def read(one, max_length=32, known=(), **config):
        others = known or [one]
        examples = [*others, replace(others[0], label="y")]
        model = RelationModel.from_examples(load(max_length), RelationConfig(**config), examples)
        [pair], lost = model.training_items([one])
        assert bool(lost) is pair.cut_around
        names = model.network.encoder.tokenizer.convert_ids_to_tokens(list(pair.tokens))
        return names, pair

    return read


def test_markers_are_single_tokens_in_place_of_the_mentions(reading):
    tokens, pair = reading(
        example("no aspirin after heart attack today", "aspirin", "heart attack")
    )
    assert tokens == ["[CLS]", "no", "@DRUG$", "after", "@GENE$", "today", "[SEP]"]
    assert pair.positions == (2, 4)
    assert not pair.cut_around


def test_mentions_that_overlap_share_a_marker(reading):
    tokens, pair = reading(example("no heart attack", "heart attack", "attack", ("drug", "drug")))
    assert tokens == ["[CLS]", "no", "@DRUG-DRUG$", "[SEP]"]
    assert pair.positions == (2, 2)


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
def test_names_may_stay_after_their_markers(reading, one, expected):
    tokens, pair = reading(one, named=True)
    assert " ".join(tokens) == expected
    assert all(tokens[position].startswith("@") for position in pair.positions)


def test_the_order_of_text_or_of_roles(reading):
    turned = example("fever after aspirin", "aspirin", "fever")
    assert reading(turned)[1].positions == (1, 3)
    assert reading(turned, order="roles")[1].positions == (3, 1)


def test_an_unknown_marker_has_several_tokens(reading):
    known = [example("lung and heart", "lung", "heart", ("organ", "organ"))]
    tokens, pair = reading(example("aspirin after fever", "aspirin", "fever"), known=known)
    assert len(pair.tokens) > 5
    assert pair.positions == (1, tokens.index("after") + 1)


def test_long_texts_are_cut_at_the_end_while_both_markers_stay(reading):
    _, pair = reading(example("aspirin after fever " + "pain " * 20, "aspirin", "fever"), 12)
    assert len(pair.tokens) == 12
    assert pair.positions == (1, 3)
    assert not pair.cut_around


@pytest.mark.parametrize("between", [2, 30])
@pytest.mark.parametrize("after_them", [0, 20])
def test_long_texts_are_cut_around_markers(reading, between, after_them):
    text = " ".join(
        ["no"] * 20 + ["aspirin"] + ["after"] * between + ["fever"] + ["pain"] * after_them
    )
    tokens, pair = reading(example(text, "aspirin", "fever"), 12)
    assert len(tokens) == 12
    assert pair.cut_around
    assert [tokens[position] for position in pair.positions] == ["@DRUG$", "@GENE$"]
    if between == 2:
        assert tokens.count("after") == 2
        assert tokens.count("no") == (3 if after_them else 6)
    else:
        assert tokens.count("after") == 8
