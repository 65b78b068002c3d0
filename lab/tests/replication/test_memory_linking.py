"""Linking by an entity memory: which mentions are asked, and what each arm answers."""

from __future__ import annotations

import gzip
import json

import pytest
import torch
from tiny_models import tiny_encoder_folder, tiny_tokenizer

from biograft.artifacts import describe_files
from biograft.errors import ConfigError
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.models.knowledge import KnowledgeBertConfig, KnowledgeBertForMaskedLM
from biograft.models.knowledge.entities import TableEntity
from biograft.text.shards import SHARDS, AnnotatedDocument, LinkedSpan, shard_path, write_shard
from biograft_lab.probing.memory_links import MemoryLinker, MentionInText
from biograft_lab.replication import Experiment, ExperimentJob, run_experiment
from biograft_lab.replication.memory_linking import read_mentions, read_surfaces

IDS = ("MESH:D1", "MESH:D2", "MESH:D3")
NAMES = "MESH:D1||aspirin\nMESH:D1||acetylsalicylic acid\nMESH:D2||heparin\nMESH:D3||iron\n"
SEEN_TEXT = "Aspirin and heparin were given."
ASKED = ((("aspirin", "D1"), ("ASA", "D1")), (("heparins", "D2"), ("iron", "D3"), ("x", "-1")))


@pytest.fixture
def model(tmp_path):
    """A random model with an entity memory of three entities."""
    folder = tmp_path / "runs/seed-1/pretrained/KeBioLM/encoder"
    tokenizer = tiny_tokenizer([SEEN_TEXT, "ASA heparins iron"])
    config = KnowledgeBertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=24,
        max_position_embeddings=32,
        n_entities=3,
        entity_dim=6,
        knowledge_layers={"entity_memory": {"after": 1, "n_nearest": 2}},
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = KnowledgeBertForMaskedLM(config)
        torch.nn.init.normal_(made.model.knowledge["entity_memory"].mention_to_entity.weight)
        torch.nn.init.normal_(made.model.entity_table.weight)
    made.entities = tuple(TableEntity(identifier) for identifier in IDS)
    made.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def job(model, write, tmp_path):
    """The job of an experiment on one set of two documents."""
    source = SourceConfig(path=write("names.txt", NAMES), format="biosyn")
    build_store(BuildConfig(sources=(source,)), tmp_path / "kb")
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    spans = (LinkedSpan(0, 7, IDS[0], 1.0), LinkedSpan(12, 19, IDS[1], 1.0))
    write_shard(shard_path(corpus, 0), [AnnotatedDocument("9", SEEN_TEXT, spans)], {})
    SHARDS.write(corpus, {"n_shards": 1, "n_documents": 1, "files": describe_files(corpus)})
    blocks = []
    for number, mentions in enumerate(ASKED):
        text = "Given: " + ", ".join(name for name, _ in mentions)
        lines = [f"{number}|t|{text}", f"{number}|a|"]
        for name, concept in mentions:
            at = text.index(name)
            lines.append(f"{number}\t{at}\t{at + len(name)}\t{name}\tChemical\t{concept}")
        blocks.append("\n".join(lines) + "\n\n")
    gold = tmp_path / "data/entity_linking/bc5cdr/pubtator/CDR_TestSet.PubTator.txt.gz"
    gold.parent.mkdir(parents=True)
    gold.write_bytes(gzip.compress("".join(blocks).encode()))
    experiment = Experiment.load("kebiolm-memory").restricted(("bc5cdr-chemical",), (1,))
    variants = {k: v for k, v in experiment.variants.items() if k != "MLM-only"}
    object.__setattr__(experiment, "variants", variants)
    minilm = tiny_encoder_folder(tmp_path / "minilm", [SEEN_TEXT, "ASA heparins iron"])
    return ExperimentJob(
        experiment=experiment,
        work=tmp_path / "work",
        data=tmp_path / "data",
        out=tmp_path / "out.json",
        inputs={name: tmp_path / name for name in ("kb", "corpus", "runs")} | {"minilm": minilm},
    )


def test_mentions_of_annotated_concepts_are_asked_by_whether_their_surface_was(job, tmp_path):
    kb = KnowledgeBase.open(tmp_path / "kb")
    surfaces = read_surfaces([AnnotatedDocument("9", SEEN_TEXT, ())])
    assert surfaces == {}
    spans = (LinkedSpan(0, 7, IDS[0], 1.0), LinkedSpan(12, 19, IDS[1], 1.0))
    surfaces = read_surfaces([AnnotatedDocument("9", SEEN_TEXT, spans)])
    asked = read_mentions("bc5cdr-chemical", job.data, kb, surfaces, 10)
    # iron was never annotated, and x has no concept
    assert [query.mention for query in asked.queries] == ["aspirin", "ASA", "heparins"]
    assert asked.seen == (True, False, False)
    assert all(q.context[q.start : q.end] == q.mention for q in asked.queries)
    assert len(read_mentions("bc5cdr-chemical", job.data, kb, surfaces, 1).queries) == 2


def test_every_arm_answers_the_same_mentions(job):
    rows = json.loads(run_experiment(job).read_text("utf-8"))["rows"]
    found = {row["config"]: row for row in rows}
    assert set(found) == {"lexical", "MiniLM", "KeBioLM", "KeBioLM, memory"}
    for row in rows:
        assert (row["n"], row["documents"]) == (3, "2 1")
        assert row["parts"] == {"seen surface": "100", "unseen surface": "011"}
        assert len(row["right"]) == 3
    assert "seed" not in found["lexical"]
    assert found["KeBioLM, memory"]["seed"] == 1
    assert found["lexical"]["right"][0] == "1"
    assert found["lexical"]["accuracy"]["seen surface"] == 100


def test_a_mention_far_into_a_text_is_linked_as_in_its_neighbourhood(model):
    linker = MemoryLinker.from_pretrained(model)
    assert linker.entities == list(IDS)
    short = MentionInText("given heparins and iron", 6, 14)
    lines = "iron " * 200
    far = MentionInText(lines + "given heparins and iron", len(lines) + 6, len(lines) + 14)
    tokens, first, last = linker._window(far)
    assert len(tokens) == linker.max_tokens == 32
    assert linker.tokenizer.convert_ids_to_tokens(tokens[first : last + 1]) == ["heparins"]
    alone = linker.link([short])
    assert linker.link([far, short, far])[1] == alone[0]  # whatever else is in the batch
    with torch.no_grad():
        ids, first, last = linker._window(short)
        output = linker.model.model(
            input_ids=torch.tensor([ids]), mentions=torch.tensor([[0, first, last]])
        )
        best = (output.queries @ linker.model.model.entity_table.weight.T).argmax()
    assert alone == [IDS[int(best)]]


def test_a_model_without_a_memory_is_refused(tmp_path):
    folder = tiny_encoder_folder(tmp_path / "tiny", [SEEN_TEXT])
    with pytest.raises(ConfigError, match="no entity memory"):
        MemoryLinker.from_pretrained(folder)
