"""Examples of Python in place of files (lists, frames, data sets); models called with texts."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd
import polars as pl
import pytest

from biograft import Recipe, finetune
from biograft.errors import ConfigError
from biograft.models.tasks import (
    ClassificationConfig,
    ClassificationModel,
    MatchingConfig,
    MatchingModel,
    NerConfig,
    NerModel,
)
from biograft.text import ClassExample, PairExample
from biograft.text.tasks.rows import to_examples

ROWS = [{"text": "no fever", "label": "a"}, {"text": "lung cancer", "label": "b"}]
CLASSES = [ClassExample("no fever", ("a",)), ClassExample("lung cancer", ("b",))]
PAIR = PairExample("lung", "heart", "1")


class Dataset(list):
    """Rows with features, as ``datasets.Dataset`` has them."""

    def __init__(self, rows, **features):
        super().__init__(rows)
        self.features = features


NAMED = SimpleNamespace(names=["O", "B-X", "I-X"])


@pytest.mark.parametrize(
    "rows",
    [ROWS, pd.DataFrame(ROWS), pl.DataFrame(ROWS), iter(ROWS), CLASSES, Dataset(ROWS)],
    ids=["list", "pandas", "polars", "iterator", "records", "data set"],
)
def test_rows_of_any_kind_are_the_same_examples(rows):
    assert to_examples("class", rows) == CLASSES


@pytest.mark.parametrize(
    "row",
    [
        {"first": "lung", "second": "heart", "label": "1"},
        {"sentence1": "lung", "sentence2": "heart", "label": 1},
        {"text": "lung", "text_pair": "heart", "label": 1},
        {"premise": "lung", "hypothesis": "heart", "label": "1"},
    ],
)
def test_pairs_under_the_names_of_others(row):
    assert to_examples("pair", [row]) == [PAIR]
    assert to_examples("pair", pd.DataFrame([row])) == [PAIR]


def test_numbers_of_labels_have_the_names_of_the_data_set():
    data = Dataset([{"text": "lung", "label": 1}], label=SimpleNamespace(names=["no", "yes"]))
    assert to_examples("class", data) == [ClassExample("lung", ("yes",))]
    tagged = Dataset(
        [{"tokens": ["no", "heart", "attack"], "ner_tags": [0, 1, 2]}],
        ner_tags=SimpleNamespace(feature=NAMED),
    )
    [document] = to_examples("document", tagged)
    assert document.text == "no heart attack"
    assert [(m.text, m.type) for m in document.mentions] == [("heart attack", "X")]


def test_documents_are_those_of_json_lines():
    rows = [{"text": "no fever", "mentions": [{"start": 3, "end": 8, "type": "X"}]}, "a text"]
    first, second = to_examples("document", rows)
    assert [(m.text, m.type) for m in first.mentions] == [("fever", "X")]
    assert (second.text, second.mentions) == ("a text", ())


@pytest.mark.parametrize(
    ("kind", "row", "message"),
    [
        ("class", {"sentence": "x", "y": 1}, "row 0: expected text and label, .*: sentence, y"),
        ("pair", {"text": "x", "label": "1"}, "expected first, second and label; .*: text, label"),
        ("pair", "one text", "expected first, second and label; found str"),
        ("document", {"tokens": ["a"], "ner_tags": ["?"]}, "'a' with '\\?' is no token with a tag"),
        (
            "document",
            {"words": ["a"]},
            "expected text and mentions, or tokens and ner_.*words",
        ),
        ("ranking", {"query": "x"}, "expected query and candidates; .*: query"),
    ],
)
def test_wrong_columns_are_named_in_one_line(kind, row, message):
    with pytest.raises(ConfigError, match=message) as caught:
        to_examples(kind, [row], "train")
    assert str(caught.value).startswith("train: ")
    assert "\n" not in str(caught.value)


def test_a_model_is_called_with_texts(load, documents):
    ner = NerModel.from_examples(load(), NerConfig(overlap=4), documents)
    assert ner("no fever").text == "no fever"
    assert [d.text for d in ner(["no fever", "a cold"])] == ["no fever", "a cold"]
    assert ner.predict(["no fever"])[0].mentions == ner("no fever").mentions
    classes = ClassificationModel.from_examples(load(), ClassificationConfig(), CLASSES)
    assert classes("no fever") == classes.predict(CLASSES)[0]
    assert classes(pd.DataFrame(ROWS)) == classes.predict(CLASSES)
    pairs = MatchingModel(load(), MatchingConfig(), ("0", "1"))
    assert pairs(("lung", "heart")) == pairs.predict([PAIR])[0]
    assert pairs([("lung", "heart")]) == pairs.predict([PAIR])


@pytest.fixture
def recipe(encoder_folder):
    return Recipe.load(
        "classification-cpu",
        {"encoder": {"name": str(encoder_folder), "max_length": 32}},
        config={"training": {"epochs": 1, "precision": "fp32"}},
    )


def test_fine_tuning_on_rows(recipe, tmp_path):
    result = finetune(recipe, tmp_path / "run", data={"train": ROWS, "dev": pl.DataFrame(ROWS)})
    assert result.results["n_examples"] == {"train": 2, "dev": 2}
    with pytest.raises(ConfigError, match="dev: expected labelled examples, found none"):
        finetune(recipe, tmp_path / "other", data={"train": ROWS, "dev": pl.DataFrame([])})
    with pytest.raises(ConfigError, match="dev: name a file"):
        finetune(recipe, tmp_path / "other", data={"train": ROWS})
    assert not (tmp_path / "other").exists()


def test_changes_of_a_recipe_as_tables():
    changes = {"config": {"training": {"epochs": 2}}, "search": {"seeds": [7]}}
    tables = Recipe.load("ner-cpu", changes)
    texts = Recipe.load("ner-cpu", ["config.training.epochs=2", "search.seeds=[7]"])
    assert tables == texts
    assert (
        Recipe.load("ner-cpu", config={"training": {"epochs": 2}}, search={"seeds": [7]}) == texts
    )
    with pytest.raises(ConfigError, match="unknown key 'epoch'"):
        Recipe.load("ner-cpu", config={"training": {"epoch": 2}})
