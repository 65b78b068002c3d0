"""Attention curves of a sentence, their differences, and sentences that do not fit."""

from __future__ import annotations

import json
import statistics
from dataclasses import replace

import numpy as np
import pytest

from biograft_lab.probing.attention import (
    AttentionConfig,
    AttentionReader,
    ReplacedSentence,
    UnfitError,
    compare_many,
    compare_names,
    look_inside,
)

TEXT = "患者有高血压史 and fever"
SENTENCE = ReplacedSentence(TEXT, 3, 6, synonym="high temperature", random="头痛")


@pytest.fixture(scope="module")
def reader(encoder_of):
    return AttentionReader.from_pretrained(encoder_of(), device="cpu")


@pytest.mark.parametrize("direction", ["to", "from"])
@pytest.mark.parametrize("head", [0, 3])
def test_each_name_at_the_same_position(reader, direction, head):
    curves = compare_names(reader, SENTENCE, AttentionConfig(direction=direction, head=head))
    assert (curves.layer, curves.position) == (2, 3)
    assert curves.tokens == ("患", "者", "有", "史", "and", "fever")
    expected = {}
    for variant, text, entity_tokens in (
        ("entity", TEXT, [4, 5, 6]),
        ("synonym", "患者有high temperature史 and fever", [4, 5]),
        ("random", "患者有头痛史 and fever", [4, 5]),
    ):
        assert SENTENCE.written(variant) == text
        weights = reader.read(text, 2, head).weights
        weights = weights if direction == "to" else weights.T
        outside = [t for t in range(1, len(weights) - 1) if t not in entity_tokens]
        expected[variant] = [sum(weights[t, e] for e in entity_tokens) for t in outside]
        np.testing.assert_allclose(curves.values[variant], expected[variant], rtol=1e-12)
    for name, difference in curves.differences.items():
        pairs = list(zip(expected[name], expected["entity"], strict=True))
        assert difference == pytest.approx(sum(abs(a - b) for a, b in pairs) / len(pairs))
        assert difference > 0.001
    values = curves.to_json()
    assert values["entity_position"] == 3
    assert values["curves"]["random"] == [round(v, 6) for v in expected["random"]]
    assert values["differences"]["synonym"] == round(curves.differences["synonym"], 6)


def test_a_name_with_the_same_tokens_has_the_same_curve(reader):
    curves = compare_names(
        reader, replace(SENTENCE, text="患者有FEVER史", end=8, synonym="fever"), AttentionConfig()
    )
    assert curves.differences["synonym"] == 0
    assert curves.differences["random"] > 0


def test_tokens_across_the_edge_do_not_fit(reader):
    joined = ReplacedSentence("and heartattack fever", 4, 9, synonym="fever", random="头痛")
    with pytest.raises(UnfitError, match=r"tokens beside the entity change .*'heart'.*'头痛'"):
        compare_names(reader, joined, AttentionConfig())


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"synonym": ""}, "the synonym is missing"),
        ({"random": " "}, "the random is missing"),
        ({"random": "高血压"}, "the random is the entity itself"),
        ({"start": 0, "end": len(TEXT)}, "nothing beside the entity"),
        ({"synonym": "\u200b"}, "no token stands for the entity"),
        ({"random": "头" * 50}, "too long for the encoder"),
    ],
)
def test_unfit_sentences_have_a_reason(reader, changes, reason):
    with pytest.raises(UnfitError, match=reason) as caught:
        compare_names(reader, replace(SENTENCE, **changes), AttentionConfig())
    assert "\n" not in str(caught.value)


def test_inside_an_entity(reader):
    inside = look_inside(reader, TEXT, (3, 6), AttentionConfig(layer=3))
    weights = reader.read(TEXT, 3).weights
    assert inside.tokens == ("高", "血", "压")
    np.testing.assert_array_equal(inside.weights, weights[4:7, 4:7])
    others = [weights[i, j] for i in (4, 5, 6) for j in (4, 5, 6) if i != j]
    assert inside.to_others == pytest.approx(sum(others) / 3)
    values = inside.to_json()
    assert values["weights"][0][2] == round(float(weights[4, 6]), 6)
    assert look_inside(reader, TEXT, (3, 6), AttentionConfig()).layer == 2
    with pytest.raises(UnfitError, match="a single token"):
        look_inside(reader, TEXT, (12, 17), AttentionConfig())


GOOD = [
    ReplacedSentence("患者有高血压史", 3, 6, "high temperature", "头痛", id="a"),
    ReplacedSentence("acute fever and 头痛", 6, 11, "high temperature", "糖尿病", id="b"),
    ReplacedSentence("fever hurt 患者", 0, 5, "temperature", "attack", id="c"),
]
LONG = ReplacedSentence("头痛" * 8 + "fever", 16, 21, "temperature", "attack", id="long")
BARE = ReplacedSentence("fever hurt", 0, 5, id="bare")


@pytest.fixture(scope="module")
def readers(encoder_of):
    folders = (encoder_of(), encoder_of(layers=2, seed=1, positions=16))
    return [AttentionReader.from_pretrained(folder, device="cpu") for folder in folders]


def test_mean_and_deviation_by_plain_loops(readers):
    config = AttentionConfig(layer=1)
    result = compare_many(readers, [GOOD[0], LONG, GOOD[1], BARE, GOOD[2]], config)
    assert [sentence["id"] for sentence in result["sentences"]] == ["a", "b", "c"]
    assert result["left_out"] == {
        "the text is too long for the encoder": 1,  # for the second one only
        "the synonym is missing": 1,
    }
    plain = json.loads(json.dumps(result))
    for k, reader in enumerate(readers):
        rows = [compare_names(reader, sentence, config).differences for sentence in GOOD]
        for name in ("synonym", "random"):
            values = [row[name] for row in rows]
            assert plain["models"][k][name] == {
                "mean": round(statistics.mean(values), 6),
                "deviation": round(statistics.stdev(values), 6),
            }
            of_each = [row["differences"][k][name] for row in plain["sentences"]]
            assert of_each == [round(value, 6) for value in values]
        nearer = sum(row["synonym"] < row["random"] for row in rows)
        assert plain["models"][k]["n_synonym_nearer"] == nearer


def test_one_sentence_has_no_deviation_and_none_is_an_error(readers):
    [model] = compare_many(readers[:1], GOOD[:1], AttentionConfig())["models"]
    assert model["synonym"]["deviation"] is None
    with pytest.raises(UnfitError, match="2: the synonym is missing"):
        compare_many(readers, [BARE, BARE], AttentionConfig())


def test_names_are_filled_in_before(readers):
    filled = compare_many(
        readers, [BARE], AttentionConfig(), lambda s: ReplacedSentence(s.text, 0, 5, "high", "头")
    )
    [row] = filled["sentences"]
    assert (row["synonym"], row["random"]) == ("high", "头")
