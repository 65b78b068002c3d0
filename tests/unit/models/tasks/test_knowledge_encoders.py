"""Tasks on an encoder with knowledge layers: trained, saved, opened as any other."""

from __future__ import annotations

import json
import shutil

import pytest
import torch

from biograft.errors import ConfigError
from biograft.models import KnowledgeBertConfig, KnowledgeBertModel, TableEntity, TextEncoder
from biograft.models.tasks import (
    InferenceConfig,
    InferenceModel,
    NerConfig,
    NerModel,
    TaskExamples,
    open_task,
    write_model,
)
from biograft.text import PairExample
from biograft.training.tasks import (
    TaskRecipe,
    TaskTrainingData,
    finetune_task,
    fit,
)

MEMORY, FUSION, NEIGHBOURS = "entity_memory", "entity_fusion", "neighbour_attention"
NAMES = ("heart attack", "fever", "lung", "aspirin", "cancer", "pain", "stops")
WORDS = ("aspirin", "fever", "lung")
PAIRS = [PairExample(word, f"no {other}", other) for word in WORDS for other in WORDS]


SETTINGS = {
    MEMORY: {"after": 1, "n_nearest": 3},
    FUSION: {"after": 0},  # what the last layer fuses, the first token does not see
    NEIGHBOURS: {"after": 1, "n_neighbours": 2},
}


def knowledge_folder(folder, encoder_folder, layers, **settings):
    """Write an encoder that knows seven entities, the words of the examples among their names."""
    plain = TextEncoder.from_pretrained(encoder_folder).model.config.to_dict()
    del plain["model_type"]
    config = KnowledgeBertConfig(
        **plain,
        n_entities=len(NAMES),
        entity_dim=8,
        knowledge_layers={name: {**SETTINGS[name], **settings} for name in layers},
    )
    torch.manual_seed(0)
    model = KnowledgeBertModel(config)
    model.entities = tuple(TableEntity(f"C{n}", name, (name,)) for n, name in enumerate(NAMES))
    if NEIGHBOURS in layers:
        rows = torch.arange(len(NAMES))
        both = torch.stack([(rows + 1) % len(NAMES), (rows + 2) % len(NAMES)], dim=1)
        model.knowledge[NEIGHBOURS].neighbours.copy_(both)
        model.knowledge[NEIGHBOURS].types.copy_(rows % 2)
    shutil.copytree(encoder_folder, folder)
    model.save_pretrained(folder)
    return folder


@pytest.fixture(params=[(FUSION,), (MEMORY, NEIGHBOURS)], ids="+".join)
def knowing(encoder_folder, tmp_path, request):
    """An encoder with knowledge layers after its first one; untrained they change nothing."""
    folder = knowledge_folder(tmp_path / "knowing", encoder_folder, request.param)
    return TextEncoder.from_pretrained(folder, max_length=32)


def learn(model, examples, folder):
    """Train, save and open a model; return the report of its training."""
    fitted = fit(model, examples, examples, folder / "run", seed=1)
    write_model(folder / "model", model, {})
    opened = open_task(folder / "model")
    assert isinstance(opened.network.encoder.model, KnowledgeBertModel)
    assert opened.predict(examples) == model.predict(examples)
    for name, layer in opened.network.encoder.model.knowledge.items():
        infused = [p for n, p in layer.named_parameters() if "infuse.weight" in n]
        assert name == MEMORY or any(weight.any() for weight in infused)  # zero before training
    return fitted.report


def test_entities(knowing, documents, training, tmp_path):
    config = NerConfig(types="keep", overlap=4, training=training(epochs=30))
    model = NerModel.from_examples(knowing, config, documents)
    assert learn(model, documents, tmp_path).micro.f1 == 1.0


def test_pairs(knowing, training, tmp_path):
    model = InferenceModel.from_examples(
        knowing, InferenceConfig(training=training(epochs=60, learning_rate=2e-3)), PAIRS
    )
    assert learn(model, PAIRS, tmp_path).accuracy == 1.0


@pytest.fixture
def recipe_of(encoder_folder, tmp_path):
    """Make a recipe: ``recipe_of(n_neighbours=1)``; ``layer`` is the layer, neutral or random."""

    def make(layer=NEIGHBOURS, neutral=True, **knowledge):
        folder = tmp_path / f"{layer}-{neutral}"
        if not folder.exists():
            settings = {} if layer == MEMORY else {"neutral_start": neutral}
            knowledge_folder(folder, encoder_folder, (layer,), **settings)
        training = {"epochs": 4, "batch_size": 4, "learning_rate": 5e-3, "precision": "fp32"}
        values = {
            "task": "inference",
            "encoder": {"name": str(folder), "max_length": 32, **knowledge},
            "config": {"training": training},
        }
        return TaskRecipe.from_values("mine", values)

    return make


def finetune(recipe, out):
    """Run a recipe on all pairs; give its run and the opened model."""
    pairs = TaskExamples(PAIRS)
    run = finetune_task(recipe, TaskTrainingData(train=pairs, dev=pairs, out=out)).run
    return run, open_task(run)


def written_predictions(run):
    [path] = run.glob("runs/*/predictions-dev.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_limits_of_a_recipe_hold_in_its_run_and_in_the_opened_model(recipe_of, tmp_path):
    run, model = finetune(recipe_of(entity_coverage=0.5, n_neighbours=1), tmp_path / "run")
    assert model.network.encoder.model.config.knowledge_layers[NEIGHBOURS]["n_neighbours"] == 1
    layer = model.network.encoder.model.knowledge[NEIGHBOURS]
    assert layer.neighbours.flatten().tolist() == [1, 2, 3, 4, 5, 6, 0]
    assert model.network.encoder.finder.ratio == 0.5
    saved = json.loads((run / "results.json").read_text())["recipe"]["encoder"]
    assert (saved["entity_coverage"], saved["n_neighbours"]) == (0.5, 1)
    written = [
        (tuple(line["labels"]), tuple(line["probabilities"])) for line in written_predictions(run)
    ]
    predictions = model.predict(PAIRS, "fp32")
    assert [(each.labels, each.probabilities) for each in predictions] == written


@pytest.mark.parametrize(
    ("layer", "knowledge", "message"),
    [
        (NEIGHBOURS, {"n_neighbours": 3}, "n_neighbours: expected 1 to 2, .* found 3"),
        (NEIGHBOURS, {"entity_coverage": 1.5}, "entity_coverage: expected .* found 1.5"),
        (FUSION, {"n_neighbours": 1}, "n_neighbours: "),
        (MEMORY, {"entity_coverage": 0.5}, "entity_coverage: "),
    ],
)
def test_limits_that_do_not_apply_are_refused_before_a_run_begins(
    recipe_of, tmp_path, layer, knowledge, message
):
    with pytest.raises(ConfigError, match=message):
        finetune(recipe_of(layer, **knowledge), tmp_path / "run")
    assert not (tmp_path / "run").exists()
