"""Evaluation of findings: levels, statuses, types, typos, against counts by hand."""

from __future__ import annotations

import json

import pytest
from marked_notes import HALVES, SHIPPED, concept_ids, read_marked, shipped_lines

from biograft.errors import ConfigError
from biograft.evaluation import evaluate_findings, read_assertions
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.linking import Linker


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kb") / "kb"
    sources = tuple(SourceConfig(path=name) for name in ("starter", "clinical-findings"))
    build_store(BuildConfig(sources=sources), folder)
    return KnowledgeBase.open(folder)


@pytest.fixture(scope="module")
def linker(kb):
    return Linker.open(kb, k=1)


def gold_file(path, text, *mentions, name="n1"):
    rows = []
    for word, concept, status, *typo in mentions:
        start = text.index(word)
        row = {"start": start, "end": start + len(word), "text": word, "concept": concept}
        rows.append(row | {"status": status} | ({"typo": True} if typo else {}))
    path.write_text(json.dumps({"id": name, "text": text, "mentions": rows}), encoding="utf-8")
    return path


def test_levels_statuses_and_typos_count_as_by_hand(tmp_path, kb, linker):
    ids = concept_ids()
    gold = gold_file(
        tmp_path / "gold.jsonl",
        "No fever. Cough and hzqxe. Aspirin for stroke.",
        ("fever", ids["Fever"], ["negated"]),
        ("Cough", ids["Cough"], ["uncertain"]),  # found as present
        ("hzqxe", ids["Headache"], [], "typo"),  # not found
    )
    result = evaluate_findings(linker, read_assertions(gold), ["disease", "symptom"])
    counts = {name: (c.right, c.wrong, c.missed) for name, c in result.levels.items()}
    assert counts == {
        "spans": (2, 1, 1),  # stroke is not in the gold standard, aspirin is a drug
        "findings": (2, 1, 1),
        "statuses": (1, 2, 2),
        "documents": (2, 1, 1),
        "document statuses": (1, 2, 2),
    }
    of = {name: (c.right, c.wrong, c.missed) for name, c in result.statuses.items()}
    assert (of["absent"], of["possible"], of["present"]) == ((1, 0, 0), (0, 0, 1), (0, 2, 1))
    assert result.typos == {"mentions": 1, "spans": 0, "findings": 0}
    assert [(m.text, m.expected, m.found) for m in result.mistakes] == [
        ("Cough", ("Cough", "possible"), ("Cough", "present")),
        ("hzqxe", ("Headache", "present"), ()),
        ("stroke", (), ("Stroke", "present")),
    ]
    assert result.to_json()["levels"]["spans"]["recall"] == pytest.approx(66.6667)
    everything = evaluate_findings(linker, read_assertions(gold))
    assert everything.levels["spans"].wrong == 2


def test_types_and_assertions_are_checked(kb, linker):
    with pytest.raises(ConfigError, match="types: nonsense"):
        evaluate_findings(linker, [], ["nonsense"])
    with pytest.raises(ConfigError, match="assertions"):
        evaluate_findings(Linker.open(kb, assertions=False), [])


@pytest.mark.parametrize("half", HALVES)
def test_the_shipped_notes_are_those_of_the_marked_files(half):
    """After an edit of tests/data/notes, run tests/unit/marked_notes.py."""
    assert (SHIPPED / "notes" / f"{half}.jsonl").read_text(encoding="utf-8") == shipped_lines(half)


def test_the_notes_name_concepts_of_the_store_and_have_typos(kb):
    ids = concept_ids()
    notes = [note for half in HALVES for note in read_marked(half, ids)]
    mentions = [mention for note in notes for mention in note["mentions"]]
    assert (len(notes), len({note["id"] for note in notes})) == (106, 106)
    assert all(mention["concept"] in kb for mention in mentions)
    assert 0.10 <= sum("typo" in mention for mention in mentions) / len(mentions) <= 0.15
