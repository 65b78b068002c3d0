"""Replaced mentions: the copies, what is never read in training, and what counts as found."""

from __future__ import annotations

from collections import defaultdict

import pytest
from toy_mentions import write_toy_mentions

from biograft.kb import KnowledgeBase
from biograft.text.documents import Document, Mention
from biograft_lab.replication import Experiment
from biograft_lab.replication.synonym_mentions import replace_mentions


@pytest.fixture
def base(tmp_path):
    return KnowledgeBase.open(write_toy_mentions(tmp_path)[0])


def document(text, *names):
    mentions = [Mention(text.index(n), text.index(n) + len(n), n, type="disease") for n in names]
    return Document("1", text, tuple(mentions))


def test_one_mention_is_replaced_and_the_others_move(base):
    test = document("有胃炎症，也有脑炎症吗", "胃炎症", "脑炎症")
    items = replace_mentions(base, {"train": [], "dev": [], "test": [test]}, 3)
    assert [(item.before.text, item.after.text) for item in items] == [
        ("胃炎症", "胃部发炎"),
        ("脑炎症", "脑部发炎"),
    ]
    assert [item.copy.text for item in items] == [
        "有胃部发炎，也有脑炎症吗",
        "有胃炎症，也有脑部发炎吗",
    ]
    for item in items:
        assert item.after in item.copy.mentions
        for mention in item.copy.mentions:
            assert item.copy.text[mention.start : mention.end] == mention.text


def test_names_that_training_has_and_mentions_that_overlap_are_left_out(base):
    test = document("有胃炎症，也有脑炎症吗", "胃炎症", "脑炎症", "脑炎")
    train = [document("胃部发炎了")]
    assert not replace_mentions(base, {"train": train, "dev": [], "test": [test]}, 3)


@pytest.mark.long
def test_every_model_answers_for_every_replaced_mention(smoke_rows):
    rows = smoke_rows("smedbert-synonyms")
    answers = defaultdict(dict)
    for row in rows:
        assert len(row["right"]) == row["n"] == sum(map(int, row["documents"].split()))
        answers[row["config"], row["seed"]][row["set"]] = row["right"]
    assert len(answers) == 2 * len(Experiment.load("smedbert-synonyms").variants)
    for found in answers.values():
        for before, after, kept in zip(
            found["original"], found["replaced"], found["kept"], strict=True
        ):
            assert kept == str(int(after == "1" or before == "0"))
