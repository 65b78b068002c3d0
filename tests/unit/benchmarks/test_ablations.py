"""Every encoder of the ablations has a recipe that fits, and lacks what its label says."""

from __future__ import annotations

from argparse import Namespace

import pytest

from biograft.errors import ConfigError
from biograft.training.run_folder import start_run

OPTIONS = Namespace(
    encoder="encoder",
    corpus="corpus",
    vectors="vectors",
    neighbours="neighbours",
    segmentation="segments",
    changes=["training.steps=7"],
)


@pytest.fixture
def recipes(script):
    """The recipes of a family by label."""
    ablations = script("ablations")

    def of(name):
        family = ablations.FAMILIES[name]
        return {
            label: ablations._recipe(family, variant, OPTIONS)
            for label, variant in family.variants.items()
        }

    return of


@pytest.mark.parametrize(
    "family",
    ["kebiolm", "embert", "embert-english", "smedbert", "smedbert-english", "smedbert-neighbours"],
)
def test_recipes_fit_and_are_alike(recipes, family):
    found = list(recipes(family).values())
    for recipe in found:
        assert recipe.encoder.name == "encoder"
        assert recipe.new is None
        assert recipe.training.steps == 7
        assert recipe.training == found[0].training
        assert "masked_tokens" in recipe.objectives
    plain = [{**recipe.to_json(), "recipe": ""} for recipe in found]
    assert all(one != other for k, one in enumerate(plain) for other in plain[:k])


def test_what_a_label_of_embert_says_is_left_out(recipes):
    embert = recipes("embert")
    whole = set(embert["all"].objectives)
    gone = {label: whole - set(recipe.objectives) for label, recipe in embert.items()}
    assert gone["without consistency"] == {"context_entity_consistency"}
    assert gone["without segmentation"] == {"entity_segmentation"}
    assert gone["without masking of halves"] == {"bidirectional_entity_masking"}
    assert len(gone["reading alone"]) == 3
    assert embert["without consistency"].stream.replacement is None


def test_what_a_label_of_smedbert_says_is_left_out(recipes):
    smedbert = recipes("smedbert")
    assert smedbert["reading alone"].knowledge is None
    assert not smedbert["without type attention"].knowledge.type_attention
    assert not smedbert["without hybrid attention"].knowledge.node_attention
    losses = {"masked_neighbour", "masked_mention"}
    assert losses <= set(smedbert["all"].objectives)
    assert not losses & set(smedbert["without knowledge losses"].objectives)
    assert smedbert["without knowledge losses"].knowledge.shown == "all"


def test_a_recipe_goes_by_its_own_name(script, recipes):
    family = script("ablations").FAMILIES["smedbert"]
    for label, recipe in recipes("smedbert").items():
        assert recipe.name == (family.variants[label].recipe or "smedbert-cpu")


def test_an_encoder_of_another_recipe_is_not_taken_for_this_one(script, recipes, tmp_path):
    ablations = script("ablations")
    folder = tmp_path / "pretrained" / "all"
    folder.mkdir(parents=True)
    described = {**recipes("embert")["all"].to_json(), "recipe": "another"}
    start_run(folder, described, {})
    (folder / "done").touch()
    options = Namespace(**{**vars(OPTIONS), "work": tmp_path, "kb": "kb"})
    with pytest.raises(ConfigError, match="was begun with recipe = 'another'"):
        ablations._pretrain("all", ablations.FAMILIES["embert"], options)
