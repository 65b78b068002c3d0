"""The span head with relations: links against loops, training, saved models, refusals."""

from __future__ import annotations

import pytest
import torch

from biograft.errors import ConfigError
from biograft.models.tasks import NerConfig, NerModel, SpanHead, TaskTraining, open_task
from biograft.models.tasks.folder import write_model
from biograft.models.tasks.ner import FIRST, LAST
from biograft.text.documents import Document, Mention, Relation
from biograft.training.tasks import fit

CONFIG = NerConfig(
    head="spans",
    types="keep",
    relations=True,
    overlap=4,
    dropout=0.0,
    training=TaskTraining(epochs=60, batch_size=4, learning_rate=0.01, precision="fp32"),
)


def related(text: str, first: str, second: str, kind: str) -> Document:
    spans = [(text.index(name), name) for name in (first, second)]
    mentions = tuple(
        Mention(start, start + len(name), name, type="Thing", id=f"T{number}")
        for number, (start, name) in enumerate(spans, 1)
    )
    relation = Relation(kind, (("subject", "T1"), ("object", "T2")))
    return Document(text, text, mentions, relations=(relation,) if kind else ())


DOCUMENTS = [
    related("aspirin helps with heart attack today", "aspirin", "heart attack", "helps"),
    related("fever and heart pain", "heart pain", "fever", "after"),
    related("aspirin and fever", "aspirin", "fever", ""),
]


def test_links_may_go_backwards_and_spans_may_not():
    head = SpanHead(8, ("Thing", f"{FIRST}r", f"{LAST}r"), max_span=2)
    (scores,) = head(torch.randn(1, 4, 8))
    for first in range(4):
        for last in range(4):
            allowed = 0 <= last - first < 2
            assert bool(scores[0, 0, first, last] > -torch.inf) == allowed
            for link in (1, 2):
                layer = slice(link * 64, link * 64 + 64)
                assert torch.isfinite(scores[0, link, first, last])
                assert head.first.weight[layer].shape == (64, 8)


def names(document: Document):
    texts = {mention.id: mention.text for mention in document.mentions}
    return {(r.type, *(texts[name] for _, name in r.arguments)) for r in document.relations}


def test_relations_are_learned_saved_and_found_again(load, tmp_path):
    model = NerModel.from_examples(load(), CONFIG, DOCUMENTS)
    assert model.labels == (
        "Thing",
        f"{FIRST}after",
        f"{LAST}after",
        f"{FIRST}helps",
        f"{LAST}helps",
    )
    done = fit(model, DOCUMENTS, DOCUMENTS, tmp_path / "run", seed=1)
    assert done.report.to_json()["f1"] == 1
    write_model(tmp_path / "model", model, {})
    found = open_task(tmp_path / "model").predict(DOCUMENTS)
    assert [names(document) for document in found] == [names(document) for document in DOCUMENTS]


def test_relations_need_the_span_head():
    with pytest.raises(ConfigError, match="relations: expected head = 'spans'"):
        NerConfig(head="crf", relations=True)


def test_relations_of_concepts_do_not_count(load):
    (first, *others) = DOCUMENTS
    concepts = Relation("treats", (("a", "D1"), ("b", "D2")), of="concepts")
    documents = [Document(first.id, first.text, first.mentions, relations=(concepts,)), *others]
    model = NerModel.from_examples(load(), CONFIG, documents)
    assert model.labels == ("Thing", f"{FIRST}after", f"{LAST}after")
    report = model.report(documents, documents).to_json()
    assert (report["f1"], list(report["classes"])) == (1.0, ["after"])
