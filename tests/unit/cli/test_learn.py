"""The command that teaches an index what people decided."""

from __future__ import annotations

import json

import pytest

from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.linking import Linker, build_index
from biograft.mapping import Decision, write_decisions
from biograft.sources import SourceConfig

CONCEPTS = [
    {"id": "D1", "name": "Myocardial Infarction", "names": ["heart attack"]},
    {"id": "D4", "name": "Common Cold", "names": ["chill"]},
]


@pytest.fixture
def kb(tmp_path):
    (tmp_path / "kb.jsonl").write_text("\n".join(map(json.dumps, CONCEPTS)), "utf-8")
    source = SourceConfig(path=tmp_path / "kb.jsonl", format="jsonl")
    build_store(BuildConfig(sources=(source,)), tmp_path / "KB")
    return KnowledgeBase.open(tmp_path / "KB")


@pytest.fixture
def index(kb, tmp_path):
    build_index(kb, tmp_path / "INDEX")
    return tmp_path / "INDEX"


def decided(term: str, concept: str, verdict: str, name: str = "") -> Decision:
    return Decision(term=term, concept=concept, verdict=verdict, name=name)


def test_the_command(kb, index, tmp_path, run_main):
    file = tmp_path / "labs.sssom.tsv"
    write_decisions(
        file, [decided("widow maker", "D1", "approved", "MI"), decided("chill", "D4", "rejected")]
    )
    base = ("--kb", str(kb.folder), "--index", str(index))
    done = run_main("learn", str(file), *base, "-o", str(tmp_path / "pairs.tsv"), "--json")
    assert done.code == 0, done.err
    report = json.loads(done.out)
    assert (report["n_approved"], report["n_rejected"], report["n_pairs"]) == (1, 1, 1)
    assert (tmp_path / "pairs.tsv").read_text("utf-8") == "D1\tMI\twidow maker\n"
    assert run_main("learn", *base).code == 2
    assert run_main("learn", *base, "--forget").code == 0
    assert not (index / "reviewed").exists()


def test_a_review_is_learned_from_its_database(kb, index, tmp_path, run_main):
    pytest.importorskip("sqlalchemy")
    from biograft.mapping import ReviewStore, ReviewTerm

    with ReviewStore.open(tmp_path / "review.db", create=True) as store:
        store.add_terms([ReviewTerm("widow maker")], reviewer="ann")
        store.decide(store.items()[0].id, "approve", reviewer="ann", concept="D1")
    base = ("--kb", str(kb.folder), "--index", str(index))
    done = run_main("learn", str(tmp_path / "review.db"), *base)
    assert done.code == 0, done.err
    assert Linker.open(kb, index).link_mentions(["widow maker"])[0][0].concept == "D1"
