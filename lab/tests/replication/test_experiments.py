"""Experiments: every shipped one fits its kind and compares like with like."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from biograft.errors import ConfigError, InputError
from biograft.training.linkers.recipes import LinkerRecipe
from biograft.training.pretraining.recipe import PretrainingRecipe
from biograft.training.run_folder import start_run
from biograft.training.tasks import TaskRecipe
from biograft_lab import replication
from biograft_lab.places import REPOSITORY, RESULTS
from biograft_lab.replication import (
    Experiment,
    ExperimentJob,
    encoders,
    shipped_experiments,
)
from biograft_lab.replication.claims import claims_of
from biograft_lab.replication.encoders import (
    TASK_SETS,
    EncoderTaskSettings,
    EncoderVariant,
    variant_recipe,
)
from biograft_lab.replication.linking import compared_encoders
from biograft_lab.replication.probes import ProbeVariant
from biograft_lab.replication.runner import KINDS, parse_settings, parse_variants, run_experiment

ENCODERS = [n for n in shipped_experiments() if Experiment.load(n).kind == "encoder_tasks"]


@pytest.fixture
def experiment(write):
    """Write an experiment of kind ``aliases`` with one change and load it."""

    def load(more=""):
        text = 'about = "A."\nkind = "aliases"\nsets = ["a", "b-0", "b-1"]\n'
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
    run = (RESULTS / f"{name}.json").exists()
    assert run or all(claim.needs for claim in claims_of(name))


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
    if experiment.kind == "probe":
        groups = parse_variants(experiment, ProbeVariant).values()
        texts = (" ".join(group.arguments) for group in groups)
        encoder = re.compile(r"(?:--encoder (?:[^{]*=)?|cloze |/encoder )\{([\w-]+)")
        found = [encoder.findall(text) for text in texts]
        return [{name: name for name in group} for group in found]
    return []


@pytest.mark.parametrize("name", shipped_experiments())
def test_encoders_that_are_compared_start_from_one_base(name):
    """KeBioLM's arm of combined-tasks did not say that it started from the base of the others."""
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


def test_a_comparison_from_two_bases_is_refused(experiment, tmp_path):
    text = shipped_experiments()["kebiolm-tasks"].read_text("utf-8")
    path = tmp_path / "mine.toml"
    path.write_text(text.replace('mlm-only = "minilm"', 'mlm-only = "kb"'), "utf-8")
    with pytest.raises(ConfigError, match=r"'KeBioLM' from 'minilm'.*'MLM-only' from 'kb'"):
        run_experiment(job(Experiment.load(path), tmp_path))
    with pytest.raises(ConfigError, match=r"bases\.x"):
        experiment("[bases]\nx = 'a'\n")


def test_runs_that_started_from_different_encoders_are_refused(tmp_path):
    experiment, inputs = Experiment.load("kebiolm-tasks"), {}
    for name in ("mlm-only", "kebiolm"):
        start_run(tmp_path / name, {"encoder": {"name": f"start-of-{name}"}}, {})
        inputs[name] = tmp_path / name / "encoder"
    with pytest.raises(ConfigError, match="started from several"):
        encoders.check_starts(job(experiment, tmp_path, inputs=inputs))
    start_run(tmp_path / "same", {"encoder": {"name": "start-of-kebiolm"}}, {})
    inputs["mlm-only"] = tmp_path / "same" / "encoder"
    encoders.check_starts(job(experiment, tmp_path, inputs=inputs))


def ablated(name):
    """The recipes of an experiment by label."""
    experiment = Experiment.load(name)
    settings = parse_settings(experiment, EncoderTaskSettings)
    paths = {name: Path(name) for name in experiment.inputs}
    return {
        label: variant_recipe(variant, settings, paths)
        for label, variant in parse_variants(experiment, EncoderVariant).items()
        if not variant.encoder
    }


def test_ablations_of_embert_lack_what_their_label_says():
    recipes = ablated("embert-ablations")
    full = set(recipes["EMBERT"].objectives)
    missing = {label: full - set(recipe.objectives) for label, recipe in recipes.items()}
    assert missing["without consistency"] == {"context_entity_consistency"}
    assert missing["without segmentation"] == {"entity_segmentation"}
    assert missing["without bidirectional masking"] == {"bidirectional_entity_masking"}
    assert len(missing["MLM-only"]) == 3
    assert recipes["without consistency"].stream.substitution is None


def test_ablations_of_smedbert_lack_what_their_label_says():
    recipes = ablated("smedbert-ablations")

    def layer(label):
        return recipes[label].knowledge.layers["neighbour_attention"]

    assert recipes["MLM-only"].knowledge is None
    assert not layer("without type attention").type_attention
    assert not layer("mean of neighbours").node_attention
    assert (
        layer("without hybrid attention").after == PretrainingRecipe.load("smedbert-cpu").new.layers
    )
    mention = {label: recipe.objectives.get("masked_mention") for label, recipe in recipes.items()}
    assert (mention["SMedBERT"].reduction, mention["SMedBERT"].weight) == ("mse", 4)
    assert (mention["mention loss as a sum"].reduction, mention["combined"].weight) == ("mean", 4)
    losses = {"masked_neighbour", "masked_mention"}
    assert losses <= set(recipes["SMedBERT"].objectives)
    assert not losses & set(recipes["without knowledge losses"].objectives)
    names = {label: recipe.name for label, recipe in recipes.items()}
    assert (names["ERNIE"], names["combined"]) == ("ernie-cpu", "combined-cpu")


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
    with pytest.raises(ConfigError, match="linking-accuracy"):
        Experiment.load("linking-acuracy")
    with pytest.raises(ConfigError, match="--sets c"):
        experiment().restricted(["c"], [])
    with pytest.raises(ConfigError, match="--input"):
        run_experiment(job(experiment("[inputs]\nkb = 'x'\n"), tmp_path, inputs={"k": tmp_path}))


def test_missing_files_are_one_clear_error(experiment, tmp_path):
    loaded = experiment("[inputs]\nkb = 'the store'\n[variants.lexical]\n")
    with pytest.raises(InputError, match="BIOGRAFT_DATA"):
        run_experiment(job(loaded, tmp_path))
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
