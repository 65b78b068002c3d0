"""Figures over many sentences: mean, deviation, and what is left out, the same for all encoders."""

import json
import statistics

import pytest

from biograft.probing.attention import (
    AttentionConfig,
    AttentionReader,
    ReplacedSentence,
    UnfitError,
    compare_many,
    compare_names,
)

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
    found = compare_many(readers, [GOOD[0], LONG, GOOD[1], BARE, GOOD[2]], config)
    assert [sentence.id for sentence in found.sentences] == ["a", "b", "c"]
    assert found.left_out == {
        "the text is too long for the encoder": 1,  # for the second one only
        "the synonym is missing": 1,
    }
    told = json.loads(json.dumps(found.to_json()))
    for k, reader in enumerate(readers):
        rows = [compare_names(reader, sentence, config).differences for sentence in GOOD]
        for name in ("synonym", "random"):
            values = [row[name] for row in rows]
            assert told["models"][k][name] == {
                "mean": round(statistics.mean(values), 6),
                "deviation": round(statistics.stdev(values), 6),
            }
            of_each = [row["differences"][k][name] for row in told["sentences"]]
            assert of_each == [round(value, 6) for value in values]
        nearer = sum(row["synonym"] < row["random"] for row in rows)
        assert told["models"][k]["n_synonym_nearer"] == nearer


def test_one_sentence_has_no_deviation_and_none_is_an_error(readers):
    [model] = compare_many(readers[:1], GOOD[:1], AttentionConfig()).to_json()["models"]
    assert model["synonym"]["deviation"] is None
    with pytest.raises(UnfitError, match="no sentence can be looked at: 2: the synonym is missing"):
        compare_many(readers, [BARE, BARE], AttentionConfig())


def test_names_are_filled_in_before(readers):
    filled = compare_many(
        readers, [BARE], AttentionConfig(), lambda s: ReplacedSentence(s.text, 0, 5, "high", "头")
    )
    assert (filled.sentences[0].synonym, filled.sentences[0].random) == ("high", "头")
