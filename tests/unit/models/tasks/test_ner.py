"""Named entity recognition: a tiny model with every head learns ten sentences."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from biograft.models.tasks import NerConfig, NerModel
from biograft.text.documents import Document, Mention
from biograft.training.tasks import fit


@pytest.mark.parametrize(
    ("head", "scheme"), [("softmax", "bioes"), ("crf", "bio"), ("spans", "bio")]
)
def test_ten_sentences_are_learnt_by_heart(head, scheme, load, documents, training, tmp_path):
    config = NerConfig(
        head=head, scheme=scheme, types="keep", overlap=4, training=training(epochs=40)
    )
    torch.manual_seed(1)
    model = NerModel.from_examples(load(), config, documents)
    assert model.labels == ("Disease", "Drug")
    fitted = fit(model, documents, documents, tmp_path / "run", seed=1)
    assert fitted.report.micro.f1 == 1.0
    assert [(d.id, d.mentions) for d in model.predict(documents)] == [
        (d.id, d.mentions) for d in documents
    ]


def test_entities_inside_others_are_learnt(load, training, tmp_path):
    text = "lung cancer and heart attack"
    mentions = (Mention(0, 11, "lung cancer", type="X"), Mention(0, 4, "lung", type="Y"))
    documents = [Document("a", text, mentions), Document("b", "fever and pain")]
    config = NerConfig(head="spans", types="keep", overlap=4, training=training(epochs=40))
    model = NerModel.from_examples(load(), config, documents)
    fitted = fit(model, documents, documents, tmp_path / "run", seed=1)
    assert fitted.report.micro.f1 == 1.0
    assert not fitted.lost


@pytest.mark.parametrize("head", ["softmax", "spans"])
def test_long_texts_are_learnt_in_windows(head, load, documents, training, tmp_path):
    """One document of all sentences, four times longer than the encoder reads at once."""
    text, mentions = "", []
    for document in documents:
        start = len(text)
        text += f"{document.text} . "
        mentions += [
            replace(m, start=m.start + start, end=m.end + start) for m in document.mentions
        ]
    long = [Document("long", text, tuple(mentions))]
    config = NerConfig(head=head, types="keep", overlap=4, max_span=3, training=training(epochs=40))
    model = NerModel.from_examples(load(max_length=16), config, long)
    assert len(model.training_items(long)[0]) > 3
    fitted = fit(model, long, long, tmp_path / "run", seed=1)
    assert fitted.report.micro.f1 == 1.0


def test_what_cannot_be_learned_is_counted_and_stays_missed(load, training):
    text = "no fever. A lung cancer"
    mentions = (
        Mention(3, 20, text[3:20]),
        Mention(12, 23, "lung cancer"),
        Mention(17, 23, "cancer"),
    )
    documents = [Document("d", text, mentions)]
    config = NerConfig(read="sentences", overlap=4, training=training())
    model = NerModel.from_examples(load(), config, documents)
    _, lost = model.training_items(documents)
    assert dict(lost) == {
        "mentions that are in no single text": 1,
        "mentions that share words with a longer one": 1,
    }
    assert model.report(documents, model.predict(documents)).micro.missed >= 2


def test_entities_that_no_window_holds_are_counted_once_each(load, training):
    text = "fever " * 30
    mentions = tuple(
        Mention(6 * first, 6 * last - 1, text[6 * first : 6 * last - 1])
        for first, last in ((0, 2), (4, 12), (9, 16), (0, 20), (20, 22))
    )
    config = NerConfig(head="spans", overlap=5, max_span=8, training=training())
    model = NerModel.from_examples(load(max_length=12), config, [Document("d", text, mentions)])
    windows, lost = model.training_items([Document("d", text, mentions)])
    assert len(windows) > 3
    in_windows = {(w.first + a, w.first + b + 1) for w in windows for a, b, _ in w.spans}
    learnable = {(m.start // 6, m.end // 6 + 1) for m in mentions} & in_windows
    assert (0, 2) in learnable
    assert (20, 22) in learnable
    assert lost["entities longer than max_span"] == 1
    assert lost["entities that no window holds"] == len(mentions) - 1 - len(learnable) > 0
