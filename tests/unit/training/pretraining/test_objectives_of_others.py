"""Objectives in one file outside the package: run as they are, and compared with plain loops."""

from __future__ import annotations

import importlib.util
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from two_processes import as_one, run_on_two, without_dropout

from biograft.errors import ConfigError
from biograft.models import TextEncoder
from biograft.recipe import Recipe
from biograft.training.objectives import OBJECTIVES, Setting, poincare_distances
from biograft.training.pretraining import PretrainingRecipe, pretrain

EXAMPLES = Path(__file__).parents[4] / "examples"
FILES = ("infonce_temperature", "biolord", "hit", "is_a")


@pytest.fixture(scope="module")
def examples():
    """The modules of examples/, which register their parts for this process."""
    modules = {}
    for name in (*FILES, "sapbert"):
        spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
        modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(modules[name])
    return modules


def metrics(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture
def gold(bench, tmp_path):
    """Misspelt names of a hundred concepts."""
    concepts = [bench.kb.concept_at(row) for row in range(0, 300, 3)]
    lines = [f"d||0|1||x||{each.names[-1].text}x||{each.id}\n" for each in concepts]
    (tmp_path / "dev.txt").write_text("".join(lines))
    return tmp_path / "dev.txt"


@pytest.mark.parametrize("name", FILES)
def test_an_example_is_short_and_trains_with_a_rising_dev_curve(
    examples, name, bench, gold, tmp_path
):
    assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) <= 60
    made = examples[name].RECIPE
    recipe = made | {
        "encoder": {"name": str(bench.encoder), "pooling": "mean", "max_length": 24},
        "stream": made.get("stream", {}) | {"dev": str(gold), "dev_format": "biosyn"},
        "training": {"steps": 100, "batch_size": 16, "eval_every": 50, "learning_rate": 2e-3},
    }
    result = pretrain(recipe, bench.kb, tmp_path / "run")
    curve = [line["evaluation"]["acc@1"] for line in metrics(result.run) if "evaluation" in line]
    assert max(curve[1:]) > curve[0]
    losses = [line["loss"] for line in metrics(result.run) if "loss" in line]
    assert np.mean(losses[-30:]) < np.mean(losses[:30])


def test_sapbert_of_public_parts_is_what_its_recipe_trains(examples, bench, gold, tmp_path):
    """Its loss is that of the objective; the curve on dev rises."""
    assert len((EXAMPLES / "sapbert.py").read_text().splitlines()) <= 60
    states, batch = random_pairs()
    loss, _ = examples["sapbert"].MultiSimilarity(None).loss(states, batch)
    expected, _ = OBJECTIVES.load("synonym_alignment")().build().loss(states, batch)
    torch.testing.assert_close(loss, expected)
    settings = {"pooling": "mean", "max_length": 16, "lower": True}
    training = {"steps": 60, "batch_size": 16, "eval_every": 20, "learning_rate": 2e-3}
    encoder = TextEncoder.from_pretrained(bench.encoder, **settings)
    curve = examples["sapbert"].align(bench.kb, encoder, gold, tmp_path / "parts", **training)
    assert max(curve[1:]) > curve[0]
    recipe = {
        "kind": "pretrain",
        "encoder": {"name": str(bench.encoder)} | settings,
        "stream": {"dev": str(gold), "dev_format": "biosyn"},
        "objective": {"synonym_alignment": {}},
        "training": training,
    }
    pretrain(recipe, bench.kb, tmp_path / "recipe")
    runs = [metrics(tmp_path / name) for name in ("parts", "recipe")]
    ours, theirs = ([line["loss"] for line in run if "loss" in line] for run in runs)
    assert ours == pytest.approx(theirs, rel=1e-4)


def random_pairs(width=6, n=7):
    """Vectors of both names of pairs whose concepts partly repeat, and of further texts."""
    rng = torch.Generator().manual_seed(3)
    labels = torch.tensor([4, 2, 4, 0, 1, 2, 9])[:n]
    states = torch.randn(2 * n, width, generator=rng)
    more = {
        name: torch.randn(n, width, generator=rng) for name in ("description", "parent", "other")
    }
    return states, {"labels": labels.repeat(2), **more}


def unit(vector):
    return vector / math.sqrt(sum(x * x for x in vector))


def test_infonce_with_a_learned_temperature_is_its_definition(examples, bench):
    objective = OBJECTIVES.load("learned_infonce")(temperature=0.2).build(Setting(width=6))
    states, batch = random_pairs()
    left, right = ([unit(v) for v in part] for part in states.chunk(2))
    labels, total = batch["labels"][:7].tolist(), 0.0
    for i in range(7):
        for a, b in ((left, right), (right, left)):
            scores = {
                j: math.exp(float(a[i] @ b[j]) / 0.2)
                for j in range(7)
                if j == i or labels[j] != labels[i]
            }
            total -= math.log(scores[i] / sum(scores.values())) / 2
    with torch.no_grad():
        loss, statistics = objective.loss(states, batch)
    assert float(loss) == pytest.approx(total / 7, rel=1e-5)
    assert statistics["temperature"] == pytest.approx(0.2)


def test_biolord_is_its_definition(examples, bench):
    setting = Setting(width=6, kb=bench.kb)
    objective = OBJECTIVES.load("biolord")(temperature=0.3).build(setting)
    states, batch = random_pairs()
    names, texts = [unit(v) for v in states[:7]], [unit(v) for v in batch["description"]]
    labels, total = batch["labels"][:7].tolist(), 0.0
    for a, b in ((names, texts), (texts, names)):
        for i in range(7):
            scores = [math.exp(float(a[i] @ b[j]) / 0.3) for j in range(7)]
            same = [j for j in range(7) if labels[j] == labels[i]]
            total -= sum(math.log(scores[j] / sum(scores)) for j in same) / len(same) / 14
    assert float(objective.loss(states, batch)[0]) == pytest.approx(total, rel=1e-5)
    for concept in list(bench.kb)[:50]:
        described = objective.describe(bench.kb.row(concept.id))
        assert described == concept.definition or described.startswith(f"{concept.name}, a kind of")


def test_hit_is_its_definition(examples, bench):
    objective = OBJECTIVES.load("hit")(cluster=0.3, centre=0.05).build(
        Setting(width=6, kb=bench.kb)
    )
    states, batch = random_pairs()

    def ball(vector):
        length = math.sqrt(sum(x * x for x in vector))
        return [x / length * math.tanh(length / math.sqrt(6)) for x in vector]

    def distance(a, b):
        gap = sum((x - y) ** 2 for x, y in zip(a, b, strict=True))
        room = (1 - sum(x * x for x in a)) * (1 - sum(y * y for y in b))
        return math.acosh(1 + 2 * gap / room)

    total, origin = 0.0, [0.0] * 6
    for i in range(7):
        child, parent, other = (
            ball(v[i].tolist()) for v in (states, batch["parent"], batch["other"])
        )
        total += max(0, distance(child, parent) - distance(child, other) + 0.3)
        total += max(0, distance(parent, origin) - distance(child, origin) + 0.05)
    assert float(objective.loss(states, batch)[0]) == pytest.approx(total / 7, rel=1e-4)


def test_distances_in_the_ball_have_gradients_everywhere():
    points = torch.tensor([[0.0, 0.0], [0.3, -0.9], [0.1, 0.1]], requires_grad=True)
    poincare_distances(points, points.detach().clone()).sum().backward()
    assert torch.isfinite(points.grad).all()


def test_a_learned_temperature_is_learned_alike_with_a_limit_of_the_device(
    examples, bench, tmp_path
):
    """Guards: parameters that are used in the loss alone were not trained."""
    encoder = without_dropout(bench.encoder, tmp_path / "no-dropout")
    tables = {
        "kind": "pretrain",
        "encoder": {"name": str(encoder), "pooling": "mean", "max_length": 16},
        "objective": {"learned_infonce": {}},
        "training": {"steps": 4, "batch_size": 16, "precision": "fp32", "learning_rate": 1e-2},
    }
    recipe = PretrainingRecipe.load(tables)
    pretrain(recipe, bench.kb, tmp_path / "one")
    lines = [line for line in metrics(tmp_path / "one") if "loss" in line]
    temperature = "learned_infonce.temperature"
    assert lines[-1][temperature] != pytest.approx(lines[0][temperature], rel=1e-3)
    limited = replace(recipe, training=replace(recipe.training, device_batch_size=3))
    pretrain(limited, bench.kb, tmp_path / "limited")
    again = [line for line in metrics(tmp_path / "limited") if "loss" in line]
    for key in ("loss", temperature):
        assert [line[key] for line in again] == pytest.approx(
            [line[key] for line in lines], rel=1e-4
        )


OF_EXAMPLES = """
import json, runpy, sys
from biograft.kb import KnowledgeBase
from biograft.training.pretraining import pretrain

for file in sys.argv[1].split(","):
    runpy.run_path(file)
for name, recipe in json.loads(sys.argv[3]).items():
    pretrain(recipe, KnowledgeBase.open(sys.argv[2]), f"{sys.argv[4]}/{name}")
"""


def test_two_processes_learn_weights_of_objectives_and_streams_of_others_as_one(
    examples, bench, tmp_path
):
    """Guards: a weight that is used in the loss alone was not trained, and crashed with two."""
    encoder = without_dropout(bench.encoder, tmp_path / "no-dropout")
    recipes = {
        name: {
            "kind": "pretrain",
            "encoder": {"name": str(encoder), "pooling": "mean", "max_length": 16},
            "stream": {"kind": stream, "bucket_batches": 2},
            "objective": {objective: {}},
            "training": {"steps": 4, "batch_size": 16, "precision": "fp32", "learning_rate": 1e-3},
        }
        for name, stream, objective in (
            ("temperature", "synonym_pairs", "learned_infonce"),
            ("texts", "synonym_pairs", "biolord"),
            ("edges", "is_a", "synonym_alignment"),
        )
    }
    (tmp_path / "two").mkdir()
    files = ",".join(str(EXAMPLES / f"{name}.py") for name in FILES)
    given = [files, bench.kb.folder, json.dumps(recipes), tmp_path / "two"]
    run_on_two(OF_EXAMPLES, *given, log=tmp_path / "log")
    for name, recipe in recipes.items():
        pretrain(recipe, bench.kb, tmp_path / name)
        as_one(tmp_path / name, tmp_path / "two" / name)


def test_a_name_that_is_taken_is_refused_and_one_of_ours_replaced(examples):
    with pytest.raises(ConfigError, match="objective 'masked_tokens': exists already"):
        OBJECTIVES.register("masked_tokens")(object)
    own = OBJECTIVES.load("hit")
    assert OBJECTIVES.register("hit")(own) is own
    assert OBJECTIVES.help()["hit"].startswith("The margins of clustering")


def test_a_dictionary_is_a_recipe():
    given = {"base": "sapbert-cpu", "name": "mine", "training": {"steps": 7}, "stream": {"seed": 1}}
    recipe = Recipe.load(given, ["training.batch_size=8"], encoder="DIR")
    shipped = Recipe.load("sapbert-cpu")
    assert (recipe.name, recipe.encoder.name, recipe.stream.seed) == ("mine", "DIR", 1)
    assert (recipe.training.steps, recipe.training.batch_size) == (7, 8)
    assert recipe.objectives == shipped.objectives
    assert given["training"] == {"steps": 7}
    with pytest.raises(ConfigError, match="base: no recipe is called 'sapbertt'"):
        Recipe.load({"base": "sapbertt"})
