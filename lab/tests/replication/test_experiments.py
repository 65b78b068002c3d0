"""Experiments: every shipped one fits its kind and compares like with like."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from biograft.errors import ConfigError, InputError
from biograft.training.linkers.recipes import LinkerRecipe
from biograft.training.pretraining.recipe import PretrainingRecipe
from biograft_lab import replication
from biograft_lab.places import REPOSITORY
from biograft_lab.replication import Experiment, ExperimentJob, shipped_claims, shipped_experiments
from biograft_lab.replication.objectives import (
    PretrainingSettings,
    PretrainingVariant,
    variant_recipe,
)
from biograft_lab.replication.runner import KINDS, parse_settings, parse_variants, run_experiment

OBJECTIVES = [n for n in shipped_experiments() if Experiment.load(n).kind == "objectives"]


@pytest.fixture
def experiment(write):
    """Write an experiment of kind ``linking`` with one change and load it."""

    def load(more="", kind="linking", sets=("a", "b-0", "b-1")):
        text = f'about = "A."\nkind = "{kind}"\nsets = {[*sets]}\n'
        return Experiment.load(write("mine.toml", text + more))

    return load


def job(experiment, folder, **changes):
    given = {"work": folder, "data": folder / "data", "out": folder / "out.json"}
    return ExperimentJob(experiment=experiment, **{**given, **changes})


@pytest.mark.parametrize("name", shipped_experiments())
def test_every_shipped_experiment_fits_its_kind(name):
    experiment = Experiment.load(name)
    KINDS.load(experiment.kind)().check(experiment)
    assert experiment.about.endswith(".")


@pytest.mark.parametrize("name", OBJECTIVES)
def test_recipes_of_variants_fit_and_differ(name):
    experiment = Experiment.load(name)
    settings = parse_settings(experiment, PretrainingSettings)
    variants = parse_variants(experiment, PretrainingVariant).values()
    recipes = [variant_recipe(variant, settings, Path) for variant in variants]
    for recipe in recipes:
        assert recipe.encoder.name == "encoder"
        assert recipe.new is None
        assert recipe.training == recipes[0].training
        assert recipe.objectives
    plain = [{**recipe.to_json(), "name": ""} for recipe in recipes]
    assert all(one != other for k, one in enumerate(plain) for other in plain[:k])


def test_encoders_that_a_claim_compares_start_from_one_base():
    for claim in shipped_claims():
        if claim.experiment and Experiment.load(claim.experiment).kind == "linking":
            variants = Experiment.load(claim.experiment).variants
            arms = [variants[arm.partition(":")[2]] for arm in (claim.of, claim.against)]
            assert len({(arm.get("encoder"), arm.get("from_scratch")) for arm in arms}) == 1


@pytest.mark.parametrize(
    ("control", "recipe"),
    [
        ("mlm-cpu", "kebiolm-cpu"),
        ("ernie-cpu", "smedbert-cpu"),
        ("combined-cpu", "smedbert-cpu"),
        ("embert-cpu", "smedbert-cpu"),
        ("embert", "smedbert"),
    ],
)
def test_recipes_that_are_compared_start_alike(control, recipe):
    one, other = PretrainingRecipe.load(control), PretrainingRecipe.load(recipe)
    assert (one.encoder.name, one.new) == (other.encoder.name, other.new)


@pytest.mark.parametrize("name", ["", "-aap", "-bc5cdr", "-cometa", "-ncbi"])
def test_a_new_generative_linker_is_as_large_as_the_pretrained_one(name):
    """The new one had dropout, so that the arms differed in two things."""
    pretrained = PretrainingRecipe.load("genbioel-pretrain-cpu").new
    assert LinkerRecipe.load(f"genbioel-finetune{name}-cpu").config.new == pretrained


def test_settings_of_a_set_and_its_folds_take_precedence(experiment):
    loaded = experiment("[settings]\nx = 1\ny = 1\n[set_settings.b]\nx = 2\nseeds = [4, 5]\n")
    assert loaded.settings_of("a") == {"x": 1, "y": 1}
    assert loaded.settings_of("b-1") == {"x": 2, "y": 1}
    assert (loaded.seeds_of("a"), loaded.seeds_of("b-0")) == ((0,), (4, 5))
    part = loaded.restricted(["b-0"], [9])
    assert (part.sets, part.seeds_of("b-0")) == (("b-0",), (9,))


@pytest.mark.parametrize("more", ["abuot = 1\n", "[set_settings.c]\nx = 1\n"])
def test_unknown_keys_are_refused(experiment, more):
    with pytest.raises(ConfigError):
        experiment(more)


def test_unknown_names_are_refused(experiment, tmp_path):
    with pytest.raises(ConfigError, match="linking-joint"):
        Experiment.load("linking-jiont")
    with pytest.raises(ConfigError, match="--sets c"):
        experiment().restricted(["c"], [])
    with pytest.raises(ConfigError, match="--input"):
        run_experiment(job(experiment("[inputs]\nkb = 'x'\n"), tmp_path, inputs={"k": tmp_path}))


def test_a_missing_input_is_one_clear_error(experiment, tmp_path):
    loaded = experiment("[inputs]\nkb = 'the store'\n[variants.lexical]\n")
    with pytest.raises(InputError, match="the store"):
        job(loaded, tmp_path).input("kb")


def test_experiments_import_nothing_of_benchmarks():
    benchmarks = {path.stem for path in (REPOSITORY / "benchmarks").glob("*.py")}
    for path in Path(replication.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            roots = {name.partition(".")[0] for name in names}
            assert not roots & {"benchmarks", *benchmarks}, path
