"""Tasks on an encoder with knowledge layers: trained, kept, opened as any other."""

from __future__ import annotations

import json
import shutil

import pytest
import torch

from biograft.corpus.tasks.records import Answer, ClassExample, PairExample, RankingExample
from biograft.errors import ConfigError
from biograft.nn import TextEncoder
from biograft.nn.knowledge import KnowledgeBertConfig, KnowledgeBertModel, TableEntity
from biograft.tasks import TaskRecipe, TaskTrainingData, finetune_task
from biograft.tasks.classification import ClassificationModel, InferenceModel, MatchingModel
from biograft.tasks.configs import (
    ClassificationConfig,
    InferenceConfig,
    MatchingConfig,
    NerConfig,
    RankingConfig,
    RelationConfig,
)
from biograft.tasks.folder import open_task, write_model
from biograft.tasks.ner import NerModel
from biograft.tasks.ranking import RankingModel
from biograft.tasks.relation import RelationModel
from biograft.tasks.task import TaskExamples
from biograft.tasks.training import fit

MEMORY, FUSION, NEIGHBOURS = "entity_memory", "entity_fusion", "neighbour_attention"
NAMES = ("heart attack", "fever", "lung", "aspirin", "cancer", "pain", "stops")
WORDS = ("aspirin", "fever", "lung")
PAIRS = [PairExample(word, f"no {other}", other) for word in WORDS for other in WORDS]


def knowing_folder(folder, encoder_folder, layers, **settings):
    """Write an encoder that knows seven entities, the words of the examples among their names."""
    known = TextEncoder.from_pretrained(encoder_folder).model.config.to_dict()
    del known["model_type"]
    config = KnowledgeBertConfig(
        **known, knowledge_after=dict.fromkeys(layers, 1), n_entities=len(NAMES), entity_dim=8,
        n_nearest=3, n_neighbours=2, **settings,
    )  # fmt: skip
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


@pytest.fixture(params=[(MEMORY,), (NEIGHBOURS,), (FUSION,), (MEMORY, NEIGHBOURS)], ids="+".join)
def knowing(encoder_folder, tmp_path, request):
    """An encoder with knowledge layers after its first one; untrained they tell nothing."""
    folder = knowing_folder(tmp_path / "knowing", encoder_folder, request.param)
    return TextEncoder.from_pretrained(folder, max_length=32)


def learn(model, examples, folder):
    """Train, keep and open a model; give the report of its training."""
    fitted = fit(model, examples, examples, folder / "run", seed=1)
    write_model(folder / "model", model, {})
    opened = open_task(folder / "model")
    assert isinstance(opened.network.model, KnowledgeBertModel)
    assert opened.predict(examples) == model.predict(examples)
    for name, layer in opened.network.model.knowledge.items():
        assert name == MEMORY or layer.infuse.weight.any()  # zero at first, and untold for ever
    return fitted.report


def test_entities(knowing, documents, training, tmp_path):
    config = NerConfig(types="keep", overlap=4, training=training(epochs=30))
    model = NerModel.from_examples(knowing, config, documents)
    assert learn(model, documents, tmp_path).micro.f1 == 1.0


def test_relations(knowing, relations, training, tmp_path):
    model = RelationModel.from_examples(
        knowing, RelationConfig(training=training(epochs=30)), relations
    )
    assert learn(model, relations, tmp_path).micro.f1 == 1.0


def test_pairs(knowing, training, tmp_path):
    model = InferenceModel.from_examples(
        knowing, InferenceConfig(training=training(epochs=30)), PAIRS
    )
    assert learn(model, PAIRS, tmp_path).accuracy == 1.0


def test_matching(knowing, training, tmp_path):
    pairs = [PairExample(p.first, p.second, str(int(p.label == "lung"))) for p in PAIRS]
    model = MatchingModel.from_examples(
        knowing, MatchingConfig(training=training(epochs=30)), pairs
    )
    assert learn(model, pairs, tmp_path).micro.f1 == 1.0


@pytest.mark.parametrize("several", [True, False])
def test_classes(knowing, several, training, tmp_path):
    examples = [
        ClassExample(f"{before} {word} today", (word,), multi=several)
        for before in ("a", "no", "cold")
        for word in WORDS
    ]
    config = ClassificationConfig(training=training(epochs=30))
    model = ClassificationModel.from_examples(knowing, config, examples)
    assert learn(model, examples, tmp_path).accuracy == 1.0


def test_answers(knowing, training, tmp_path):
    candidates = tuple(Answer(word, int(word == "lung")) for word in WORDS)
    questions = [RankingExample(f"no {word}", candidates) for word in WORDS]
    config = RankingConfig(negatives=2, training=training(epochs=30))
    model = RankingModel.from_examples(knowing, config, questions)
    assert learn(model, questions, tmp_path).accuracy == 1.0


@pytest.fixture
def told(encoder_folder, tmp_path):
    """Make a recipe: ``told(n_neighbours=1)``; ``layer`` says on which layer, neutral or drawn."""

    def make(layer=NEIGHBOURS, neutral=True, **knowledge):
        folder = tmp_path / f"{layer}-{neutral}"
        if not folder.exists():
            knowing_folder(folder, encoder_folder, (layer,), neutral_start=neutral)
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
    [path] = run.glob("runs/*/*/predictions-dev.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_run_is_told_what_its_recipe_says_and_so_is_its_opened_model(told, tmp_path):
    run, model = finetune(told(told_share=0.5, n_neighbours=1), tmp_path / "run")
    config = model.network.model.config
    assert (config.told_share, config.n_neighbours) == (0.5, 1)
    layer = model.network.model.knowledge[NEIGHBOURS]
    assert layer.neighbours.flatten().tolist() == [1, 2, 3, 4, 5, 6, 0]
    assert model.network.encoder.finder.share == 0.5
    said = json.loads((run / "results.json").read_text())["recipe"]["encoder"]
    assert (said["told_share"], said["n_neighbours"]) == (0.5, 1)
    written = [
        (tuple(said["labels"]), tuple(said["probabilities"])) for said in written_predictions(run)
    ]
    predictions = model.predict(PAIRS, "fp32")
    assert [(answer.labels, answer.probabilities) for answer in predictions] == written
    whole, told_all = finetune(told(), tmp_path / "whole")
    assert told_all.network.model.config.told_share == 1.0
    assert written_predictions(whole) != written_predictions(run)


@pytest.mark.parametrize("layer", [NEIGHBOURS, FUSION])
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_of_a_share_of_nothing_nothing_is_learned(told, tmp_path, layer, share):
    _, model = finetune(told(layer, told_share=share), tmp_path / "run")
    items, _ = model.training_items(PAIRS)
    n_told = len(model.network.collate(items).inputs["entities"])
    assert 0 < n_told < 2 * len(PAIRS) if share else n_told == 0
    assert bool(model.network.model.knowledge[layer].infuse.weight.any()) is bool(share)


@pytest.mark.parametrize("layer", [NEIGHBOURS, FUSION])
def test_what_is_told_changes_what_is_read(told, layer):
    texts = ["no fever after heart attack", "he took"]
    whole, none = (told(layer, neutral=False, told_share=s).encoder.load() for s in (1.0, 0.0))
    assert len(whole.tell(whole.tokenize(texts))["entities"]) == 2
    assert len(none.tell(none.tokenize(texts))["entities"]) == 0
    (told_of, plain), (untold, same) = (each.encode(texts) for each in (whole, none))
    assert abs(told_of - untold).max() > 1e-3
    assert plain.tolist() == same.tolist()


def test_an_answer_is_the_same_alone_and_among_longer_texts(told):
    """Which share is told once hung on the padding."""
    encoder = told(neutral=False, told_share=0.5).encoder.load()
    examples = [*PAIRS, PairExample("lung and fever " * 5, "a cold", "lung")]
    model = InferenceModel.from_examples(encoder, InferenceConfig(), examples)
    together = model.predict(examples, "fp32")
    alone = [answer for example in examples for answer in model.predict([example], "fp32")]
    for one, other in zip(together, alone, strict=True):
        assert one.probabilities == pytest.approx(other.probabilities, abs=1e-6)


@pytest.mark.parametrize(
    ("layer", "knowledge", "message"),
    [
        (NEIGHBOURS, {"n_neighbours": 3}, "n_neighbours: expected 1 to 2, those known, found 3"),
        (NEIGHBOURS, {"told_share": 1.5}, "told_share: expected a share from 0 to 1, found 1.5"),
        (FUSION, {"n_neighbours": 1}, "n_neighbours: the encoder sees no neighbours"),
        (MEMORY, {"told_share": 0.5}, "is told of no entities; leave them out"),
    ],
)
def test_what_cannot_be_told_is_refused_before_a_run_begins(
    told, tmp_path, layer, knowledge, message
):
    with pytest.raises(ConfigError, match=message):
        finetune(told(layer, **knowledge), tmp_path / "run")
    assert not (tmp_path / "run").exists()
