"""Populations of mentions by their concept, and their recall."""

from __future__ import annotations

import pytest

from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.models.knowledge.entities import TableEntity, write_entities
from biograft.models.tasks.task import NerConfig
from biograft.text.documents import Document, Mention
from biograft.text.formats import write_documents
from biograft_lab.replication.differences import Arms, find_difference
from biograft_lab.replication.populations import KNOWN, SEEN, UNKNOWN, Populations, recall_pairs
from biograft_lab.replication.task_counts import pack_pairs

TEXT = "fever, cough, pain and chill"


def document(*mentions):
    found = [
        Mention(start, end, TEXT[start:end], concepts=concepts, type=kind)
        for start, end, kind, *concepts in mentions
    ]
    return Document("1", TEXT, tuple(found))


@pytest.fixture
def populations(write, tmp_path):
    """A store of three concepts, of which a table has two, and training text with one."""
    lines = "".join(f"MESH:D{n}||name {n}\n" for n in (1, 2, 3))
    source = SourceConfig(path=write("names.txt", lines), format="biosyn")
    build_store(BuildConfig(sources=(source,)), tmp_path / "kb")
    (tmp_path / "encoder").mkdir()
    write_entities(tmp_path / "encoder", [TableEntity("MESH:D1"), TableEntity("MESH:D2")])
    train = [document((0, 5, "D", "D1"), (7, 12, "D", "D9"))]
    return Populations.read(train, tmp_path / "encoder", KnowledgeBase.open(tmp_path / "kb"))


def test_a_concept_is_seen_known_or_neither(populations):
    """Gold ids have no prefix, those of the table have one."""
    concepts = {"D1": SEEN, "D9": SEEN, "D2": KNOWN, "D3": UNKNOWN, "D7": UNKNOWN, "-1": ""}
    for concept, name in concepts.items():
        assert populations.of(Mention(0, 1, "x", concepts=(concept,))) == name
    assert populations.of(Mention(0, 1, "x", concepts=("D3", "D2"))) == KNOWN
    assert populations.of(Mention(0, 1, "x")) == ""


def test_recall_counts_the_mentions_of_each_document(populations, tmp_path):
    gold = [
        document((0, 5, "D", "D2"), (7, 12, "C", "D2"), (14, 18, "D", "D3"), (23, 28, "D", "D1")),
        document(),
    ]
    found = [document((0, 5, "D"), (7, 12, "D"), (14, 17, "D")), document((0, 5, "D"))]
    write_documents(found, tmp_path / "p.jsonl", "jsonl")
    expected = {"keep": 1, "ignore": 2}
    for types, n_known in expected.items():
        pairs = recall_pairs(populations, NerConfig(types=types), gold, tmp_path / "p.jsonl")
        unseen = [(0, 1), (0, 0)]
        assert pairs == {SEEN: unseen, KNOWN: [(n_known, 2), (0, 0)], UNKNOWN: unseen}


def test_the_recall_of_a_part_is_compared_over_documents_and_both_kinds_of_seeds():
    def arm(n_found):
        recall = {KNOWN: dict.fromkeys("12", pack_pairs([(n_found, 2), (n_found, 2), (0, 0)]))}
        return {"counts": dict.fromkeys("12", "1/2 1/2 1/2"), "recall": recall}

    rows = [
        {"set": "b", "pretraining_seed": seed, "encoders": {"x": arm(2), "y": arm(1)}}
        for seed in (1, 2)
    ]
    content = {"rows": rows}
    part = find_difference(Arms(set="b", of="x", against="y", part=KNOWN), content, content)
    assert part.evidence.effect == pytest.approx(50)
    assert part.how.startswith("bootstrap over 3 documents, 2 seeds of pre-training and 2")
    whole = find_difference(Arms(set="b", of="x", against="y"), content, content)
    assert whole.evidence.effect == 0
