"""What every test document adds to a metric: as the reports of the tasks count."""

from __future__ import annotations

import json

import numpy as np
import pytest

from biograft.errors import ConfigError
from biograft.metrics import entity_report
from biograft.models.tasks.task import MatchingConfig, NerConfig, RankingConfig, RelationConfig
from biograft.text.documents import Document, Mention
from biograft.text.formats import write_documents
from biograft.text.tasks import Answer, RankingExample
from biograft_lab.replication.differences import Arms, find_difference
from biograft_lab.replication.task_counts import (
    count_bigrams,
    count_documents,
    pack_pairs,
    unpack_pairs,
)

TEXT = "fever and cough and pain"


def document(name, *spans):
    mentions = tuple(Mention(a, b, TEXT[a:b], type=kind) for a, b, kind in spans)
    return Document(name, TEXT, mentions)


GOLD = [document("1", (0, 5, "D"), (10, 15, "D")), document("2"), document("3", (0, 5, "D"))]
FOUND = [document("1", (0, 5, "D"), (10, 15, "S")), document("2", (0, 5, "D")), document("3")]


@pytest.mark.parametrize(
    ("types", "pairs"), [("keep", [(2, 4), (0, 1), (0, 1)]), ("ignore", [(4, 4), (0, 1), (0, 1)])]
)
def test_entities_count_with_or_without_their_types(types, pairs, tmp_path):
    write_documents(FOUND, tmp_path / "p.jsonl", "jsonl")
    entities = [
        [
            (row, m.start, m.end, m.type if types == "keep" else "")
            for row, each in enumerate(documents)
            for m in each.mentions
        ]
        for documents in (GOLD, FOUND)
    ]
    f1 = entity_report(*entities).micro.f1
    found = count_documents("ner", NerConfig(types=types), GOLD, tmp_path / "p.jsonl", f1)
    assert found == pairs
    with pytest.raises(ConfigError, match="but the result is"):
        count_documents("ner", NerConfig(types=types), GOLD, tmp_path / "p.jsonl", f1 + 0.01)


@pytest.mark.parametrize(
    ("task", "config", "lines", "value", "pairs"),
    [
        (
            "matching",
            MatchingConfig(),
            [{"gold": [g], "labels": [p]} for g, p in ("11", "10", "01", "00")],
            0.5,
            [(2, 2), (0, 1), (0, 1), (0, 0)],
        ),
        (
            "relation",
            RelationConfig(),
            [{"gold": g, "label": p} for g, p in (("a", "a"), ("a", "b"), ("false", "a"))],
            0.4,
            [(2, 2), (0, 2), (0, 1)],
        ),
        (
            "ranking",
            RankingConfig(questions="single"),
            [
                {"relevance": r, "rank": n}
                for r, n in (([1, 0], 1), ([0, 1], 2), ([1, 1], 1), ([0], None))
            ],
            0.5,
            [(1, 1), (0, 1), (0, 0), (0, 0)],
        ),
    ],
)
def test_lines_of_predictions_count_as_the_metric_does(task, config, lines, value, pairs, tmp_path):
    path = tmp_path / "p.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    assert count_documents(task, config, [], path, value) == pairs


def row(fold, seed, **arms):
    encoders = {
        arm: {"counts": {"1": packed, "2": packed}, "test": {"values": [0, 0]}}
        for arm, packed in arms.items()
    }
    return {"set": f"b-{fold}", "pretraining_seed": seed, "encoders": encoders}


def test_arms_are_compared_over_documents_folds_and_seeds():
    documents = " ".join(["2/2"] * 50 + ["0/2"] * 50)
    rows = [row(fold, seed, x=documents, y="1/2 " * 100) for fold in (0, 1) for seed in (1, 2)]
    rows[0]["encoders"]["x"]["counts"] = {"1": "2/2 " * 100, "2": "2/2 " * 100}
    content = {"rows": rows}
    found = find_difference(Arms(set="b", of="x", against="y"), content, content)
    # seed 1: 150 of 200 documents right, seed 2: 100 of 200; y has half of each document
    assert found.evidence.effect == pytest.approx(12.5)
    assert found.n_seeds == 4
    assert "200 documents, 2 seeds of pre-training and 2 of fine-tuning" in found.how
    assert found.evidence.low < 0 < found.evidence.high


def test_pairs_are_read_as_written():
    pairs = [(4, 6), (0, 0), (12, 25)]
    assert np.array_equal(unpack_pairs(pack_pairs(pairs)), pairs)


def test_the_answer_with_most_bigrams_of_the_question_is_a_floor():
    def question(*answers):
        candidates = tuple(Answer(text, relevance) for text, relevance in answers)
        return RankingExample("孩子发热怎么办", candidates)

    examples = [
        question(("发热要多喝水", 1), ("咳嗽", 0)),
        question(("发热", 1), ("孩子", 0)),  # a tie is wrong
        question(("发热", 0), ("咳嗽", 1)),
        question(("发热", 1), ("咳嗽", 1), ("吐", 0)),
    ]
    assert count_bigrams(examples, "single") == [(1, 1), (0, 1), (0, 1), (0, 0)]
    assert count_bigrams(examples, "answered")[3] == (1, 1)
