"""All text objectives in one model: their inputs, their order, and the sum of their losses."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import torch
from manifests import changed, contents
from safetensors.torch import load_file
from transformers import AutoModelForMaskedLM, BertConfig, BertForMaskedLM
from two_processes import as_one, as_values, losses, pretrain_on_two, run_on_two

from biograft.errors import ConfigError, StoreError
from biograft.models import (
    KnowledgeBertConfig,
    KnowledgeBertForMaskedLM,
    TextEncoder,
)
from biograft.training.objectives import (
    CONSISTENT,
    HEAD_OFFSET,
    IGNORED,
    OBJECTIVES,
    SEGMENT_ENDS,
    ObjectiveModel,
    Setting,
    TextExample,
    collate,
)
from biograft.training.pretraining import PretrainingRecipe, TextReader, pretrain

N_TOKENS, WIDTH, MASK = 40, 8, 4
SIZES = {
    "vocab_size": N_TOKENS,
    "hidden_size": WIDTH,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 32,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "initializer_range": 0.3,
}
SETTING = Setting(mask=MASK, n_tokens=N_TOKENS, special=(0, 1, 2, 3, 4), width=WIDTH)
EMBERT = {
    "masked_tokens": {},
    "context_entity_consistency": {},
    "entity_segmentation": {},
    "bidirectional_entity_masking": {
        "entity_ratio": 1.0,
        "max_token_ratio": 0.3,
        "position_dim": 4,
    },
}


def bert():
    torch.manual_seed(0)
    return BertForMaskedLM(BertConfig(**SIZES))


def knowledge_bert():
    torch.manual_seed(0)
    return KnowledgeBertForMaskedLM(
        KnowledgeBertConfig(
            **SIZES,
            n_entities=3,
            entity_dim=4,
            knowledge_layers={"entity_memory": {"after": 1, "n_nearest": 2}},
        )
    )


def example(seed):
    """A text of 16 to 20 words with a long mention of five and a short one that was replaced."""
    rng = np.random.default_rng([9, seed])
    n_words = int(rng.integers(16, 21))
    tokens = np.array([2, *rng.integers(5, N_TOKENS, size=n_words), 3])
    ends = np.full(len(tokens), IGNORED)
    ends[3:8] = [0, 1, 0, 1, 1]
    return TextExample(
        tokens=tokens,
        segments=np.zeros_like(tokens),
        words=np.array([-1, *range(n_words), -1]),
        mentions=np.array([[3, 7, 0], [10, 11, 1]]),
        token_labels={SEGMENT_ENDS: ends},
        mention_labels={
            HEAD_OFFSET: np.array([3 if seed % 2 else 2, IGNORED]),
            CONSISTENT: np.array([IGNORED, seed % 2]),
        },
    )


def text_model(lm=None, **options):
    tables = {name: table | options.get(name, {}) for name, table in EMBERT.items()}
    made = {name: OBJECTIVES.load(name)(**table).build(SETTING) for name, table in tables.items()}
    return ObjectiveModel(TextReader(lm or bert()), made)


def in_order(objectives):
    return sorted(objectives, key=lambda objective: objective.order)


def prepared(made, n):
    examples = []
    for seed in range(n):
        rng, found = np.random.default_rng([9, seed]), example(seed)
        for objective in in_order(made.objectives.values()):
            found = objective.prepare(found, rng)
        examples.append(found)
    return examples


@pytest.mark.parametrize("reduction", ["mean", "sequence_sum"])
def test_an_update_is_the_same_in_one_batch_or_several(reduction):
    """Each term by its own count: masked heads and adjective parts are distributed unevenly."""
    own = {"reduction": reduction}
    made = text_model(entity_segmentation=own, bidirectional_entity_masking=own)
    examples = prepared(made, 9)
    whole, stats = made(collate(examples, 0), {})
    parts = [collate(examples[start:end], 0) for start, end in [(0, 2), (2, 3), (3, 9)]]
    counts = [made.counts(part) for part in parts]
    assert {"masked_tokens", "bidirectional_entity_masking.head"} < set(counts[0])
    total, added = 0.0, dict.fromkeys(stats, 0.0)
    for part, count in zip(parts, counts, strict=True):
        multipliers = {
            name: count[name] * len(parts) / max(1, sum(each[name] for each in counts))
            for name in count
        }
        loss, found = made(part, multipliers)
        total += float(loss.detach()) / len(parts)
        added = {key: added[key] + found[key] / len(parts) for key in added}
    assert total == pytest.approx(float(whole.detach()), rel=1e-5)
    with torch.no_grad():
        evaluated = made.evaluate(parts, "fp32")
    for key in stats:
        assert added[key] == pytest.approx(stats[key], rel=1e-5)
        assert evaluated[key] == pytest.approx(stats[key], rel=1e-5)


def test_an_accuracy_stands_beside_chance_and_its_error():
    """As plain code counts them: items, the most frequent label, the error of a mean of batches."""
    made = text_model()
    batches = [collate([each], 0) for each in prepared(made, 7)]
    found = made.evaluate(batches, "fp32")
    name = "entity_segmentation"
    parts = [made.evaluate([batch], "fp32") for batch in batches]
    sizes = [part[f"{name}.n"] for part in parts]
    labels = [label for batch in batches for label in batch.token_labels[SEGMENT_ENDS].ravel()]
    ends, others = labels.count(1), labels.count(0)
    assert found[f"{name}.n"] == sum(sizes) == ends + others
    assert found[f"{name}.chance"] == pytest.approx(max(ends, others) / (ends + others))
    mean = found[f"{name}.accuracy"]
    spread = sum(
        (n * (part[f"{name}.accuracy"] - mean)) ** 2 for n, part in zip(sizes, parts, strict=True)
    )
    assert found[f"{name}.error"] == pytest.approx((7 / 6 * spread) ** 0.5 / sum(sizes))
    assert parts[0][f"{name}.error"] == 0  # of one batch nothing is known


def test_the_loss_is_the_weighted_sum_of_all_terms_and_reaches_every_weight():
    made = text_model(
        knowledge_bert(), bidirectional_entity_masking={"shared_head": False, "max_tokens": 3}
    )
    loss, stats = made(collate(prepared(made, 12), 0), {})
    weights = {
        "masked_tokens": 1,
        "context_entity_consistency": 2,
        "entity_segmentation": 2,
        "bidirectional_entity_masking.head": 0.5,
        "bidirectional_entity_masking.adjective": 0.5,
    }
    assert {key.rpartition(".")[0] for key in stats} == set(weights)
    wanted = sum(weight * stats[f"{name}.loss"] for name, weight in weights.items())
    assert float(loss.detach()) == pytest.approx(wanted, rel=1e-5)
    loss.backward()
    assert len(list(made.heads.parameters())) == 4 + 6 + 2 * 7
    for name, parameter in made.heads.named_parameters():
        assert parameter.grad.any(), name


TRAINING = {
    "steps": 6,
    "batch_size": 8,
    "precision": "fp32",
    "learning_rate": 2e-3,
    "save_every": 3,
}
KEBIOLM = {
    "masked_tokens": {"mode": "whole_entity"},
    "entity_detection": {},
    "entity_linking": {},
}


@pytest.fixture(scope="module")
def encoder(bench, tmp_path_factory):
    """The tiny encoder, without dropout."""
    folder = tmp_path_factory.mktemp("bert") / "bert"
    model = TextEncoder.from_pretrained(bench.encoder)
    model.model.config.hidden_dropout_prob = model.model.config.attention_probs_dropout_prob = 0.0
    model.save_pretrained(folder)
    return folder


@pytest.fixture
def recipe(starter_shards, encoder):
    def make(knowledge=True, objectives=None, stream=None, **training):
        values = {
            "encoder": {"name": str(encoder)},
            "stream": {
                "kind": "annotated_text",
                "shards": str(starter_shards),
                "max_length": 32,
                "pack": False,
                **(stream or {}),
            },
            "objective": KEBIOLM if objectives is None else objectives,
            "training": TRAINING | training,
        }
        if knowledge:
            layers = {"entity_memory": {"after": 1, "n_nearest": 4}}
            usual = {"layers": layers, "dim": 8}
            values["knowledge"] = usual if knowledge is True else knowledge
        return PretrainingRecipe.from_values("tiny", values)

    return make


def weights(folder):
    return AutoModelForMaskedLM.from_pretrained(folder).state_dict()


def test_a_run_gives_a_model_that_knows_its_entities(bench, recipe, tmp_path):
    result = pretrain(recipe(steps=30), bench.kb, tmp_path / "run")
    model = AutoModelForMaskedLM.from_pretrained(result.encoder)
    assert isinstance(model, KnowledgeBertForMaskedLM)
    assert model.config.n_entities == result.counts["text"]["n_entities"] > 30
    lines = (result.encoder / "entities.jsonl").read_text(encoding="utf-8").splitlines()
    first = json.loads(lines[0])
    assert bench.kb[first["id"]].name == first["name"]
    found = losses(tmp_path / "run")
    assert sum(found[-5:]) < 0.9 * sum(found[:5])
    entry = json.loads((tmp_path / "run/metrics.jsonl").read_text().splitlines()[-2])
    assert {f"{name}.loss" for name in KEBIOLM} < set(entry)
    vectors = TextEncoder.from_pretrained(result.encoder).encode(["fever"])
    assert vectors.shape == (1, 32)


def test_a_resumed_run_ends_with_the_same_weights(recipe, tmp_path):
    whole = pretrain(recipe(), None, tmp_path / "whole")
    stopped = recipe(max_minutes=1e-9)
    while not pretrain(
        stopped, None, tmp_path / "parts", resume=(tmp_path / "parts").exists()
    ).training.finished:
        pass
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")
    parts = weights(tmp_path / "parts/encoder")
    for name, tensor in weights(whole.encoder).items():
        assert torch.equal(tensor, parts[name]), name


def test_resume_of_a_finished_run_changes_no_file(recipe, tmp_path):
    """It changed tokenizer.json."""
    finished = pretrain(recipe(), None, tmp_path / "run")
    before = contents(finished.run)
    pretrain(recipe(), None, tmp_path / "run", resume=True)
    assert changed(before, finished.run) == []


def test_accumulated_batches_are_as_one(recipe, tmp_path):
    pretrain(recipe(batch_size=8), None, tmp_path / "one")
    pretrain(recipe(batch_size=8, device_batch_size=4), None, tmp_path / "two")
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), abs=1e-5)


FUSION = {"knowledge": {"layers": {"entity_fusion": {"after": 1}}, "dim": 8}}
ALIKE = {
    "kebiolm": {},
    "sharded": {"shard": True, "device_batch_size": 2, "clip": 0.5},
    "buckets": {"stream": {"bucket_batches": 2}, "device_batch_size": 2},
    "sampled": {"objectives": {**KEBIOLM, "entity_linking": {"n_sampled": 5}}},
    "geometry": {
        "knowledge": False,
        "objectives": {"masked_tokens": {}, "name_geometry": {"max_names": 12}},
    },
    "ernie": {**FUSION, "objectives": {"masked_tokens": {}, "entity_prediction": {}}},
}


@pytest.mark.parametrize(
    "name",
    [each if each == "ernie" else pytest.param(each, marks=pytest.mark.long) for each in ALIKE],
)
def test_two_processes_are_as_one(recipe, tmp_path, name):
    """Sharded, each process holds half of every weight, and sums the gradients of two passes."""
    made = recipe(batch_size=8, **ALIKE[name])
    one = pretrain(made, None, tmp_path / "one")
    pretrain_on_two(made, None, tmp_path / "two")
    as_one(tmp_path / "one", tmp_path / "two")
    halves = weights(tmp_path / "two/encoder")
    for key, tensor in weights(one.encoder).items():
        if not key.endswith("score.bias"):  # its gradient is 0 but for rounding, which Adam scales
            torch.testing.assert_close(halves[key], tensor, rtol=0, atol=1e-4, msg=key)


SHARDED = """
import json, os, sys
from pathlib import Path
from torch import distributed
from torch.distributed.tensor import DTensor
from biograft.training.pretraining import PretrainingRecipe, pretrain
from biograft.training import loop

values, out, sizes = sys.argv[1:]
recipe = PretrainingRecipe.from_values("tiny", json.loads(values))
held, update = [], loop.Updater.update

def record(updater, *given):
    tensors = [p for p in updater.model.parameters() if p.requires_grad]
    held[:] = [sum(t.to_local().numel() if isinstance(t, DTensor) else t.numel() for t in tensors)]
    return update(updater, *given)

loop.Updater.update = record
finished, resume = False, False
while not finished:
    finished = pretrain(recipe, None, out, resume=resume).training.finished
    resume = True
    distributed.barrier()
Path(f"{sizes}.{os.environ['RANK']}.json").write_text(json.dumps(held))
"""


@pytest.mark.long
def test_a_sharded_run_holds_a_half_each_and_resumes_exactly(recipe, tmp_path):
    """The checkpoint is whole: one process resumes it, too."""

    def run(name, **training):
        values = json.dumps(as_values(recipe(steps=4, save_every=2, shard=True, **training)))
        run_on_two(SHARDED, values, tmp_path / name, tmp_path / name, log=tmp_path / "log")
        halves = [json.loads((tmp_path / f"{name}.{rank}.json").read_text())[0] for rank in (0, 1)]
        return halves, weights(tmp_path / name / "encoder")

    halves, whole = run("whole")
    _, parts = run("parts", max_minutes=1e-9)
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")
    for name, tensor in whole.items():
        assert torch.equal(tensor, parts[name]), name
    checkpoint = tmp_path / "whole/checkpoints/step-00000004"
    n_weights = sum(each.numel() for each in load_file(checkpoint / "model.safetensors").values())
    assert sum(halves) == n_weights
    assert halves[0] == pytest.approx(halves[1], rel=0.02)
    shutil.rmtree(checkpoint)
    pretrain(recipe(steps=4, save_every=2), None, tmp_path / "whole", resume=True)
    assert losses(tmp_path / "whole") == pytest.approx(losses(tmp_path / "parts"), abs=1e-5)


def test_a_model_with_knowledge_is_trained_further(bench, recipe, tmp_path):
    first = pretrain(recipe(), bench.kb, tmp_path / "first")
    assert first.counts["n_random_entities"] == first.counts["text"]["n_entities"]
    on = as_values(recipe())
    on["encoder"] = {"name": str(first.encoder)}
    second = pretrain(PretrainingRecipe.from_values("on", on), None, tmp_path / "second")
    names = [(run / "entities.jsonl").read_text() for run in (first.encoder, second.encoder)]
    assert names[0] == names[1]
    on["knowledge"]["layers"]["entity_memory"]["n_nearest"] = 3
    with pytest.raises(ConfigError, match=r"entity_memory\.n_nearest: .* with 4, found 3"):
        pretrain(PretrainingRecipe.from_values("on", on), None, tmp_path / "third")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"knowledge": False, "objectives": {"entity_linking": {}}}, "no entity table"),
        (
            {"knowledge": {"layers": {"entity_memory": {"after": 3}}, "dim": 8}},
            r"entity_memory\.after: .* has 2 layers, found 3",
        ),
        ({"stream": {"max_length": 128}}, r"stream\.max_length: expected at most 64"),
        ({"stream": {"shards": "."}}, "corpus annotate"),
    ],
)
def test_runs_that_cannot_be_are_refused(recipe, tmp_path, changes, message):
    with pytest.raises((ConfigError, StoreError), match=message):
        pretrain(recipe(**changes), None, tmp_path / "run")
    assert not (tmp_path / "run").exists()
