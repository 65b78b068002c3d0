"""Experiments: every shipped one fits its kind and compares like with like."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from biograft.errors import ConfigError, InputError
from biograft.training.linkers.recipes import LinkerRecipe
from biograft.training.pretraining.recipe import PretrainingRecipe
from biograft.training.run_folder import start_run
from biograft.training.tasks import TaskRecipe
from biograft_lab import replication
from biograft_lab.places import REPOSITORY
from biograft_lab.replication import (
    Experiment,
    ExperimentJob,
    encoders,
    shipped_experiments,
)
from biograft_lab.replication.encoders import (
    TASK_SETS,
    EncoderTaskSettings,
    EncoderVariant,
    variant_recipe,
)
from biograft_lab.replication.linking import compared_encoders
from biograft_lab.replication.runner import KINDS, parse_settings, parse_variants, run_experiment

ENCODERS = [n for n in shipped_experiments() if Experiment.load(n).kind == "encoder_tasks"]


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


@pytest.mark.parametrize("name", ENCODERS)
def test_recipes_of_variants_fit_and_differ(name):
    experiment = Experiment.load(name)
    settings = parse_settings(experiment, EncoderTaskSettings)
    paths = {name: Path(name) for name in experiment.inputs}
    variants = parse_variants(experiment, EncoderVariant).values()
    recipes = [variant_recipe(v, settings, paths) for v in variants if not v.encoder]
    for recipe in recipes:
        assert recipe.encoder.name == settings.encoder
        assert recipe.new is None
        assert recipe.training == recipes[0].training
        assert "masked_tokens" in recipe.objectives
    plain = [{**recipe.to_json(), "name": ""} for recipe in recipes]
    assert all(one != other for k, one in enumerate(plain) for other in plain[:k])


@pytest.mark.parametrize("name", ENCODERS)
def test_changes_of_fine_tuning_fit_the_task_recipes(name):
    experiment = Experiment.load(name)
    variants = parse_variants(experiment, EncoderVariant).values()
    for set_name in experiment.sets:
        changes = parse_settings(experiment, EncoderTaskSettings, set_name).task_changes
        for variant in variants:
            TaskRecipe.load(TASK_SETS[set_name].recipe, [*changes, *variant.task_changes])


def compared(name):
    """The groups of encoders that an experiment compares, each as inputs by label."""
    experiment = Experiment.load(name)
    if experiment.kind == "encoder_tasks":
        return [encoders.encoder_inputs(experiment)]
    if experiment.kind == "linking":
        return compared_encoders(experiment)
    return []


@pytest.mark.parametrize("name", shipped_experiments())
def test_encoders_that_are_compared_start_from_one_base(name):
    experiment = Experiment.load(name)
    for group in filter(None, compared(name)):
        assert len({experiment.base_of(encoder) for encoder in group.values()}) == 1
        trained = {given for given in group.values() if "pretrain" in experiment.inputs[given]}
        assert trained <= {*experiment.bases, *experiment.bases.values(), "encoder"}


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


TRAINED = """[inputs]
kb = "the store"
minilm = "the folder of MiniLM"
a = "a trained encoder"
b = "a trained encoder"
[bases]
a = "minilm"
b = "minilm"
[variants.A]
encoder = "a"
[variants.B]
encoder = "b"
"""


def test_a_comparison_from_two_bases_is_refused(experiment, tmp_path):
    other = experiment(TRAINED.replace('b = "minilm"', 'b = "kb"'), "encoder_tasks", ["ncbi"])
    with pytest.raises(ConfigError, match=r"'A' from 'minilm'.*'B' from 'kb'"):
        run_experiment(job(other, tmp_path))
    with pytest.raises(ConfigError, match=r"bases\.x"):
        experiment("[bases]\nx = 'a'\n")


def test_runs_that_started_from_different_encoders_are_refused(experiment, tmp_path):
    trained, inputs = experiment(TRAINED, "encoder_tasks", ["ncbi"]), {}
    for name in ("a", "b"):
        start_run(tmp_path / name, {"encoder": {"name": f"start-of-{name}"}}, {})
        inputs[name] = tmp_path / name / "encoder"
    with pytest.raises(ConfigError, match="started from several"):
        encoders.check_starts(job(trained, tmp_path, inputs=inputs))
    start_run(tmp_path / "same", {"encoder": {"name": "start-of-b"}}, {})
    inputs["a"] = tmp_path / "same" / "encoder"
    encoders.check_starts(job(trained, tmp_path, inputs=inputs))


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
