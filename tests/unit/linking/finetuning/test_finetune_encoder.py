"""Whole runs: what lay people say is learned, runs are exact, results load elsewhere."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import torch
from generative_store import query_in
from manifests import changed, contents
from tiny_seq2seq import tiny_seq2seq
from transformers import AutoModel
from two_processes import loads_after_joining, losses, run_on_two, without_dropout

from biograft.errors import ConfigError, OutputError, StoreError
from biograft.linking import (
    WEIGHTS,
    DenseConfig,
    DenseIndex,
    IndexConfig,
    LabelledMention,
    LexicalIndex,
    LinkerConfig,
    build_index,
    open_index,
    read_weights,
    update_index,
    write_weights,
)
from biograft.models import TextEncoder
from biograft.models.adapters import LoraSettings
from biograft.training.batches import OrderedBatches
from biograft.training.linkers import (
    LINKERS,
    EpochOrder,
    LinkerRecipe,
    LinkerTrainingData,
    Shard,
    finetune_encoder,
    make_examples,
)
from biograft.training.linkers.encoder import (
    CANDIDATES,
    EpochCandidates,
    MentionBatch,
    MentionPairs,
    load_epoch,
    path_of,
)
from biograft.training.objectives import EncoderReader, SynonymMarginal, SynonymMarginalConfig


@pytest.fixture
def run(clinic, config_of, tmp_path):
    """Fine-tune: ``run("folder", steps=3, k=6)``; options of training go to the training."""

    def start(folder, *, resume=False, mentions=clinic.mentions, **options):
        training = {
            name: options.pop(name)
            for name in (
                "steps",
                "epochs",
                "batch_size",
                "max_minutes",
                "device_batch_size",
                "seed",
                "save_every",
                "keep",
            )
            if name in options
        }
        config = config_of(training=training, **options)
        encoder = clinic.load()
        return finetune_encoder(
            clinic.kb, encoder, mentions, config, tmp_path / folder, resume=resume
        )

    return start


def metrics(result):
    return [json.loads(line) for line in (result.run / "metrics.jsonl").read_text().splitlines()]


def n_right(clinic, encoder, folder):
    index = DenseIndex.build(clinic.kb, encoder, folder, DenseConfig(precision="fp32"))
    hits = index.search([mention.text for mention in clinic.mentions], 1)
    concepts = clinic.kb.table("names").column("concept").to_numpy()[hits.rows[:, 0]]
    return sum(
        clinic.kb.id_at(int(concept)) in mention.concepts
        for concept, mention in zip(concepts, clinic.mentions, strict=True)
    )


@pytest.mark.parametrize(
    "loss", [pytest.param("marginal", marks=pytest.mark.long), "bank", "contrastive"]
)
def test_what_lay_people_say_is_learned(run, clinic, tmp_path, loss):
    result = run("run", epochs=20, loss=loss, batch_size=8 if loss == "contrastive" else 4)
    lines = metrics(result)
    assert result.training.finished
    assert lines[-1]["loss"] < 0.5 * lines[0]["loss"]
    before = n_right(clinic, clinic.load(), tmp_path / "before")
    trained = TextEncoder.from_pretrained(result.model)
    assert before <= 4
    assert n_right(clinic, trained, tmp_path / "after") == len(clinic.mentions)
    index = DenseIndex.open(tmp_path / "after", clinic.kb, trained)
    best = index.search(["belly ache"], 1).rows[0, 0]
    assert clinic.kb.name(int(best)).text in ("abdominal pain", "Abdominal Pain", "pain of abdomen")


def test_the_weight_of_lexical_search_is_learned_and_written(run):
    result = run("run", epochs=2, marginal={"lexical_weight": 0.8, "lexical_rate_factor": 20})
    content = WEIGHTS.read(result.model)
    assert content["weights"] == {"dense": 1.0, "lexical": result.report["lexical_weight"]}
    assert read_weights(result.model) == content["weights"]
    assert (
        content["marginal"]["lexical_rate_factor"],
        content["lexical"]["synonym_substitution"],
    ) == (20, True)
    assert content["provenance"]["kb"]
    assert 0.01 < abs(result.report["lexical_weight"] - 0.8) < 0.5
    lines = metrics(result)
    keys = ("with_gold", "gold_probability", "gold_first", "gold_found")
    assert {f"marginal.{key}" for key in keys} <= set(lines[0])
    assert json.loads(json.dumps(result.to_json())) == result.to_json()
    without = run("pairs", epochs=1, loss="contrastive")
    assert without.report["lexical_weight"] is None
    assert read_weights(without.model) is None
    by_products = run("products", steps=1, marginal={"similarity": "dot", "temperature": 1.0})
    assert by_products.report["lexical_weight"] is not None
    lexical = max(by_products.report["lexical_weight"], 0.0)
    assert read_weights(by_products.model, "dot") == {"dense": 1.0, "lexical": lexical}
    with pytest.raises(ConfigError, match="learned with dot, found cosine"):
        read_weights(by_products.model)


def test_misleading_lexical_scores_get_no_weight(run):
    wrong = [("belly button", "C0"), ("headache", "C3"), ("insomnia", "C2"), ("dyspnea", "C1")]
    mentions = [LabelledMention(text, frozenset({concept})) for text, concept in wrong]
    result = run(
        "run",
        epochs=4,
        mentions=mentions,
        marginal={"lexical_weight": 0.0, "lexical_rate_factor": 20},
    )
    assert result.report["lexical_weight"] < 0
    content = WEIGHTS.read(result.model)
    assert content["learned"] == {"lexical": result.report["lexical_weight"]}
    assert content["weights"] == {"dense": 1.0, "lexical": 0.0}


@pytest.mark.parametrize("weight", [0.0, 0.3, 4.0])
def test_an_index_puts_names_in_the_order_that_was_learned(run, clinic, tmp_path, weight):
    """The scores of training, name by name, against those of the search of an index."""
    marginal = {"lexical_weight": weight, "lexical_rate_factor": 20}
    result = run("run", epochs=1, marginal=marginal)
    trained = TextEncoder.from_pretrained(result.model)
    config = IndexConfig(dense=DenseConfig(precision="fp32"))
    build_index(clinic.kb, tmp_path / "I", trained, config)
    search = open_index(clinic.kb, tmp_path / "I").search
    learned = max(result.report["lexical_weight"], 0)
    assert search.weights == pytest.approx(
        {"dense": 1 / (1 + learned), "lexical": learned / (1 + learned)}
    )
    mentions = [mention.text for mention in clinic.mentions]
    names = clinic.kb.table("names").column("text").to_pylist()
    rows = np.tile(np.arange(len(names)), (len(mentions), 1))
    lexical_scores = LexicalIndex.build(clinic.kb).score(mentions, rows)
    config = SynonymMarginalConfig(lexical_weight=learned, temperature=0.1)
    with torch.inference_mode():
        arrays = {
            "names": rows,
            "lexical": np.where(np.isfinite(lexical_scores), lexical_scores, 0),
        }
        objective = SynonymMarginal(config)
        reader = EncoderReader(trained, {"marginal": objective}, by_length=True).eval()
        vectors, view = reader(MentionBatch((*mentions, *names), len(mentions), arrays))
        taught = objective.scores(vectors, view("marginal"))
    expected = taught.numpy() * 0.1 / (1 + learned)
    np.testing.assert_allclose(search.score(mentions, rows), expected, atol=1e-5)


def test_a_weight_learned_beside_inner_products_is_that_of_their_index(run, clinic, tmp_path):
    """Guards: it was not saved, since the scores of an index are divided by lengths of vectors.

    Names are in the order of training for a text whose vector is as long as the mean of names.
    """
    marginal = {"lexical_weight": 3.0, "similarity": "dot", "temperature": 1.0}
    result = run("run", steps=2, marginal=marginal)
    trained = TextEncoder.from_pretrained(result.model)
    config = IndexConfig(dense=DenseConfig(precision="fp32", similarity="dot"))
    build_index(clinic.kb, tmp_path / "I", trained, config)
    search = open_index(clinic.kb, tmp_path / "I").search
    rows = np.arange(clinic.kb.n_names)
    vectors = search.generators[1].vectors_of(rows).astype(np.float64)
    texts = clinic.kb.table("names").column("text").to_pylist()
    _, firsts = np.unique([trained.prepare(text) for text in texts], return_index=True)
    lengths = np.linalg.norm(vectors[firsts], axis=1)  # equal names are one vector
    weight = result.report["lexical_weight"] / (lengths.mean() * lengths.max())
    assert search.weights == pytest.approx(
        {"dense-dot": 1 / (1 + weight), "lexical": weight / (1 + weight)}, rel=1e-4
    )
    update_index(clinic.kb, tmp_path / "I")
    assert open_index(clinic.kb, tmp_path / "I").search.weights == search.weights
    as_cosine = LinkerConfig(similarity="cosine")
    by_cosine = open_index(clinic.kb, tmp_path / "I", as_cosine).search
    assert by_cosine.weights == {"dense": 0.5, "lexical": 0.5}
    with pytest.raises(ConfigError, match="learned with dot, found cosine"):
        build_index(clinic.kb, tmp_path / "J", trained)


def test_the_encoder_loads_elsewhere(run):
    result = run("run", steps=2)
    model = AutoModel.from_pretrained(result.model)
    ours = TextEncoder.from_pretrained(result.model)
    assert (ours.pooling, ours.max_length) == ("mean", 16)
    for key, weight in ours.model.state_dict().items():
        assert torch.equal(weight, model.state_dict()[key])
    assert (result.model / "modules.json").exists()  # what sentence-transformers reads


@pytest.mark.filterwarnings("ignore::DeprecationWarning:sentence_transformers")
def test_vectors_are_equal_elsewhere_and_the_card_says_what_was_done(run):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    result = run("run", steps=2)
    texts = ["heart attack", "Flu"]
    ours = TextEncoder.from_pretrained(result.model).encode(texts, precision="fp32")
    other = sentence_transformers.SentenceTransformer(str(result.model), device="cpu")
    np.testing.assert_allclose(other.encode(texts), ours, atol=1e-5)
    card = (result.model / "README.md").read_text()
    assert card.startswith("---\n")
    assert "library_name: sentence-transformers\n" in card
    assert "| step | 2 |" in card
    assert f"| loss | {result.training.loss:.4g} |" in card
    assert "with the marginal loss" in card
    assert str(result.run.parent) not in card


def test_candidates_are_found_anew_each_epoch(run):
    result = run("run", epochs=8, refresh="full")
    n = len(EpochCandidates._fields)
    epochs = [load_epoch(result.run / "candidates", epoch, CANDIDATES) for epoch in range(8)]
    assert all(len(arrays) == n for arrays in epochs)
    assert (epochs[0]["texts"] != epochs[-1]["texts"]).any()
    assert epochs[-1]["gold_found"].mean() > epochs[0]["gold_found"].mean()
    assert not path_of(result.run / "candidates", 8).exists()


@pytest.mark.parametrize("loss", ["marginal", "bank", "contrastive"])
@pytest.mark.parametrize("passes", [1, 3])
def test_a_resumed_run_is_the_same_to_the_last_bit(run, loss, passes):
    options = {"steps": 5, "batch_size": 3 * passes, "device_batch_size": 3, "loss": loss}
    whole = run("whole", **options)
    again = run("again", **options)
    part = run("parts", **options, max_minutes=1e-9)
    assert part.training.step == 1
    while not part.training.finished:
        part = run("parts", **options, max_minutes=1e-9, resume=True)
    one, two, three = (
        TextEncoder.from_pretrained(r.model).fingerprint() for r in (whole, again, part)
    )
    assert one == two == three
    assert (
        whole.report["lexical_weight"]
        == again.report["lexical_weight"]
        == part.report["lexical_weight"]
    )
    for path in sorted((whole.run / "candidates").glob("*/*")):
        assert path.read_bytes() == (part.run / path.relative_to(whole.run)).read_bytes()


def test_resume_of_a_finished_run_changes_no_file(run):
    finished = run("run", steps=2)
    before = contents(finished.run)
    run("run", steps=2, resume=True)
    assert changed(before, finished.run) == []


def test_search_weights_fitted_after_a_run_stay_when_it_is_resumed_after_its_end(run):
    """They were removed, and fitted again under another date."""
    options = {"loss": "contrastive", "max_minutes": 1e-9}
    begun = run("run", steps=2, **options)
    write_weights(begun.model, 0.25, {})
    run("run", steps=2, resume=True, **options)  # trains on: they are of another encoder
    assert not (begun.model / WEIGHTS.file).exists()
    write_weights(begun.model, 0.5, {})
    before = contents(begun.run)
    run("run", steps=2, resume=True, **options)
    assert changed(before, begun.run) == []


def test_an_interrupted_run_needs_its_candidates(run):
    options = {"steps": 3, "batch_size": 3}
    part = run("parts", **options, max_minutes=1e-9)
    shutil.rmtree(part.run / "candidates")
    with pytest.raises(StoreError, match="epoch-0000: missing, damaged"):
        run("parts", **options, resume=True)


def test_a_run_goes_on_only_with_the_same(run, clinic):
    run("run", steps=2)
    with pytest.raises(OutputError, match="exists already"):
        run("run", steps=2)
    with pytest.raises(ConfigError, match="with k"):
        run("run", steps=2, k=8, resume=True)
    with pytest.raises(ConfigError, match="with mentions = "):
        run("run", steps=2, mentions=clinic.mentions[:4], resume=True)


def test_mentions_without_gold_may_wait(run):
    lines = metrics(run("run", epochs=1, k=2, missing_gold="skip"))
    assert min(line["marginal.with_gold"] for line in lines) < 1
    assert all(
        line["marginal.with_gold"] == pytest.approx(line["marginal.gold_found"]) for line in lines
    )
    lines = metrics(run("added", epochs=1, k=2))
    assert all(line["marginal.with_gold"] == 1 for line in lines)
    assert np.mean([line["marginal.gold_found"] for line in lines]) < 1


TWO_PROCESSES = """
import json
import os
import sys
from pathlib import Path

from biograft.config import from_mapping
from biograft.kb import KnowledgeBase
from biograft.training.linkers import FinetuneConfig, finetune_encoder
from biograft.linking.queries import LabelledMention
from biograft.models import TextEncoder
from biograft.models.adapters import LoraSettings

kb, folder, mentions, options, out, loading = sys.argv[1:]
loading = json.loads(loading)
if "lora" in loading:
    loading["lora"] = LoraSettings(**loading["lora"])
encoder = TextEncoder.from_pretrained(folder, **loading)
result = finetune_encoder(
    KnowledgeBase.open(kb),
    encoder,
    [LabelledMention(text, frozenset(concepts)) for text, concepts in json.loads(mentions)],
    from_mapping(FinetuneConfig, json.loads(options)),
    out,
)
ended = {"encoder": encoder.fingerprint(), "weight": result.report["lexical_weight"]}
Path(f"{out}.rank{os.environ['RANK']}.json").write_text(json.dumps(ended))
"""


@pytest.mark.long
def test_two_processes_learn_the_same(clinic, tmp_path):
    out = tmp_path / "run"
    clinic.load().save_pretrained(tmp_path / "start")
    options = {"k": 6, "training": {"steps": 3, "batch_size": 4, "precision": "fp32"}}
    mentions = [(mention.text, sorted(mention.concepts)) for mention in clinic.mentions]
    texts = [json.dumps(mentions), json.dumps(options)]
    given = [clinic.kb.folder, tmp_path / "start", *texts, out, "{}"]
    run_on_two(TWO_PROCESSES, *given, log=tmp_path / "log")
    one, two = (json.loads((tmp_path / f"run.rank{k}.json").read_text()) for k in (0, 1))
    assert one == two
    assert one["encoder"] != clinic.load().fingerprint()
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [line["rows"] for line in lines] == [4, 4, 4]


@pytest.mark.parametrize(
    ("loss", "parts"),
    [
        ("marginal", ""),
        *(
            pytest.param(loss, parts, marks=pytest.mark.long)
            for loss in ("bank", "contrastive")
            for parts in ("", "towers", "lora")
        ),
    ],
)
def test_two_processes_are_as_one(clinic, config_of, tmp_path, loss, parts):
    """Some mentions have no gold candidate, so that the processes hold unequal numbers."""
    clinic.load().save_pretrained(tmp_path / "saved")
    start = without_dropout(tmp_path / "saved", tmp_path / "start")
    options = {
        "loss": loss,
        "k": 2,
        "reach": 4,
        "missing_gold": "skip",
        "training": {"epochs": 3, "batch_size": 4, "precision": "fp32", "learning_rate": 1e-3},
    }
    loading = {"towers": {"query_encoder": str(start)}, "lora": {"lora": {"r": 4}}}.get(parts, {})
    lora = {"lora": LoraSettings(r=4)} if parts == "lora" else {}
    encoder = TextEncoder.from_pretrained(start, **loading | lora)
    finetune_encoder(clinic.kb, encoder, clinic.mentions, config_of(**options), tmp_path / "one")
    mentions = json.dumps([(each.text, sorted(each.concepts)) for each in clinic.mentions])
    texts = [mentions, json.dumps(options)]
    given = [clinic.kb.folder, start, *texts, tmp_path / "two", json.dumps(loading)]
    run_on_two(TWO_PROCESSES, *given, log=tmp_path / "log")
    one, two = losses(tmp_path / "one"), losses(tmp_path / "two")
    assert len(one) == 6
    assert two == pytest.approx(one, abs=1e-5)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("linker-encoder", ()),
        ("genbioel-finetune", ("config.generation_weight=0.5", "config.fit_weight=false")),
        ("linker-rerank", ()),
    ],
    ids=["encoder", "generative", "rerank"],
)
def test_processes_join_before_a_model_is_loaded(clinic, tmp_path, monkeypatch, name, changes):
    """The index has an encoder, too."""
    encoder = clinic.load()
    encoder.save_pretrained(tmp_path / "start")
    build_index(clinic.kb, tmp_path / "I", encoder, IndexConfig(dense=DenseConfig()))
    queries = [
        query_in(f"{each.text} today", each.text, *each.concepts) for each in clinic.mentions
    ]
    tiny_seq2seq([each.text for each in clinic.mentions]).save_pretrained(tmp_path / "bart")
    start = tmp_path / ("bart" if name == "genbioel-finetune" else "start")
    recipe = LinkerRecipe.load(name, changes, encoder=str(start))
    index = None if name == "linker-encoder" else tmp_path / "I"
    data = LinkerTrainingData(kb=clinic.kb, train=queries, out=tmp_path / "run", index=index)
    with loads_after_joining(monkeypatch):
        LINKERS.load(recipe.linker).run(recipe, data)


def mention(text, *concepts):
    return LabelledMention(text, frozenset(concepts))


@pytest.fixture
def pairs_of(clinic, config_of):
    def make(mentions, seed=0, kb=clinic.kb):
        config = config_of(loss="contrastive")
        return MentionPairs(make_examples(kb, clinic.load(), mentions, config), seed)

    return make


def test_partners_are_all_else_that_is_said_of_the_concept(pairs_of, clinic):
    pairs = pairs_of(clinic.mentions)
    row = [example.text for example in pairs.paired].index("belly ache")
    sampled = {pairs.batch(epoch, [row]).right[0] for epoch in range(80)}
    assert sampled == {"abdominal pain", "pain of abdomen", "my belly hurts"}
    assert pairs.batch(3, [row]).right == pairs.batch(3, [row]).right
    other = pairs_of(clinic.mentions, seed=1)
    every = list(range(len(pairs)))
    assert any(pairs.batch(e, every).right != other.batch(e, every).right for e in range(3))


def test_a_mention_is_not_its_own_partner(pairs_of, store_of):
    kb = store_of([{"id": "A", "name": "Belly-Ache"}, {"id": "B", "name": "navel"}], "alone")
    pairs = pairs_of([mention("belly ache", "A"), mention("the belly", "B")], kb=kb)
    assert [example.text for example in pairs.paired] == ["the belly"]
    with pytest.raises(ConfigError, match="none of 1 has a partner"):
        pairs_of([mention("BELLY ACHE", "A")], kb=kb)


def test_concepts_that_are_meant_together_are_no_negatives(pairs_of):
    pairs = pairs_of(
        [mention("a", "C0", "C1"), mention("b", "C1", "C2"), mention("c", "C3"), mention("d", "C2")]
    )
    labels = pairs.batch(0, [0, 1, 2, 3]).labels.tolist()
    assert labels[0] == labels[1] == labels[3] != labels[2]


def test_batches_can_be_taken_up(pairs_of, clinic):
    pairs = pairs_of(clinic.mentions)
    source = OrderedBatches(EpochOrder(len(pairs), 3, 0, Shard()), pairs.batch)
    batches = list(source.batches(2))
    assert len(source) == len(batches) == 3
    assert sorted(t for b in batches for t in b.left) == sorted(m.text for m in clinic.mentions)
    for batch, again in zip(batches[1:], source.batches(2, 1), strict=True):
        assert (batch.left, batch.right) == (again.left, again.right)
