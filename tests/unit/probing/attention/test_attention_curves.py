"""The three curves of a sentence, the difference of each, and which sentences do not fit."""

from dataclasses import replace

import numpy as np
import pytest

from biograft.probing.attention import (
    AttentionConfig,
    AttentionReader,
    ReplacedSentence,
    UnfitError,
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
def test_each_name_in_the_same_place(reader, direction, head):
    curves = compare_names(reader, SENTENCE, AttentionConfig(direction=direction, head=head))
    assert (curves.layer, curves.place) == (2, 3)
    assert curves.tokens == ("患", "者", "有", "史", "and", "fever")
    expected = {}
    for variant, text, own in (
        ("entity", TEXT, [4, 5, 6]),
        ("synonym", "患者有high temperature史 and fever", [4, 5]),
        ("random", "患者有头痛史 and fever", [4, 5]),
    ):
        assert SENTENCE.written(variant) == text
        weights = reader.read(text, 2, head).weights
        weights = weights if direction == "to" else weights.T
        outside = [t for t in range(1, len(weights) - 1) if t not in own]
        expected[variant] = [sum(weights[t, e] for e in own) for t in outside]
        np.testing.assert_allclose(curves.values[variant], expected[variant], rtol=1e-12)
    for name, found in curves.differences.items():
        pairs = list(zip(expected[name], expected["entity"], strict=True))
        assert found == pytest.approx(sum(abs(a - b) for a, b in pairs) / len(pairs))
        assert found > 0.001
    told = curves.to_json()
    assert told["entity_place"] == 3
    assert told["curves"]["random"] == [round(v, 6) for v in expected["random"]]
    assert told["differences"]["synonym"] == round(curves.differences["synonym"], 6)


def test_a_name_that_is_read_alike_has_the_same_curve(reader):
    curves = compare_names(
        reader, replace(SENTENCE, text="患者有FEVER史", end=8, synonym="fever"), AttentionConfig()
    )
    assert curves.differences["synonym"] == 0
    assert curves.differences["random"] > 0


def test_tokens_that_reach_over_the_edge_do_not_fit(reader):
    glued = ReplacedSentence("and heartattack fever", 4, 9, synonym="fever", random="头痛")
    with pytest.raises(UnfitError, match=r"tokens beside the entity change .*'heart'.*'头痛'"):
        compare_names(reader, glued, AttentionConfig())


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
def test_what_does_not_fit_says_why(reader, changes, reason):
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
    told = inside.to_json()
    assert told["weights"][0][2] == round(float(weights[4, 6]), 6)
    assert look_inside(reader, TEXT, (3, 6), AttentionConfig()).layer == 2
    with pytest.raises(UnfitError, match="a single token: nothing goes on inside 'fever'"):
        look_inside(reader, TEXT, (12, 17), AttentionConfig())
