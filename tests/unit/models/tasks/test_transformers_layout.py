"""Saved task models: transformers opens the folder and gives the same scores and labels."""

from __future__ import annotations

import pytest
import torch
from tiny_models import tiny_tokenizer
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    DebertaV2Config,
    DistilBertConfig,
    ElectraConfig,
    ModernBertConfig,
    RobertaConfig,
    pipeline,
)

from biograft.errors import ConfigError, StoreError
from biograft.models import TextEncoder
from biograft.models.tasks import (
    ClassificationConfig,
    ClassificationModel,
    InferenceConfig,
    InferenceModel,
    NerConfig,
    NerModel,
    RankingConfig,
    RankingModel,
    RelationConfig,
    RelationModel,
    open_task,
    write_model,
)
from biograft.text import Answer, ClassExample, PairExample, RankingExample, anonymise

TEXTS = ("aspirin helps with heart attack today", "no fever", "lung cancer and fever")
PAIRS = [PairExample(text, other, str(int(text < other))) for text in TEXTS for other in TEXTS]


def spread(model, folder):
    """Give the last layer large weights, so that labels differ; save, and open again."""
    torch.manual_seed(3)
    for weight in model.network.label_weights().values():
        torch.nn.init.normal_(weight, std=0.5)
    write_model(folder, model, {})
    opened = open_task(folder)
    opened.network.eval()
    return opened


def scores_of(model, items):
    with torch.inference_mode():
        return model.network(model.network.collate(items))[0]


def theirs(auto, folder, *texts, **options):
    model = auto.from_pretrained(folder)
    encoded = AutoTokenizer.from_pretrained(folder)(
        *texts, padding=True, truncation=True, return_tensors="pt"
    )
    with torch.inference_mode():
        return model.eval()(**encoded).logits


@pytest.mark.parametrize("head", ["softmax", "crf"])
def test_tokens(head, load, documents, tmp_path):
    config = NerConfig(head=head, types="keep", overlap=4)
    model = spread(NerModel.from_examples(load(), config, documents), tmp_path / "model")
    items, _ = model.training_items(documents)
    ours = scores_of(model, items)
    logits = theirs(
        AutoModelForTokenClassification, tmp_path / "model", [d.text for d in documents]
    )
    for row, item in enumerate(items):
        own = logits[row, list(item.positions)]
        assert torch.allclose(ours[row, : item.n_words], own, atol=1e-5)


@pytest.mark.parametrize("types", ["keep", "ignore"])
def test_the_pipeline_finds_the_same_entities(types, load, documents, tmp_path):
    config = NerConfig(types=types, overlap=4)
    model = spread(NerModel.from_examples(load(), config, documents), tmp_path / "model")
    find = pipeline("token-classification", str(tmp_path / "model"), aggregation_strategy="first")
    n_found = 0
    for document in model.predict(documents, "fp32"):
        found = [(m.start, m.end, m.type or "Entity") for m in document.mentions]
        n_found += len(found)
        assert [(e["start"], e["end"], e["entity_group"]) for e in find(document.text)] == found
    assert n_found > 5


def test_the_names_of_tags(load):
    labels = NerModel(load(), NerConfig(overlap=4), ("",)).network.model.config.id2label
    assert labels == {0: "O", 1: "B-Entity", 2: "I-Entity"}


@pytest.mark.parametrize("several", [False, True])
def test_classes(several, load, tmp_path):
    examples = [
        ClassExample(text, (str(row % 2), "c")[: 1 + several], multi=several)
        for row, text in enumerate(TEXTS)
    ]
    model = ClassificationModel.from_examples(load(), ClassificationConfig(), examples)
    model = spread(model, tmp_path / "model")
    logits = theirs(AutoModelForSequenceClassification, tmp_path / "model", list(TEXTS))
    items, _ = model.training_items(examples)
    assert torch.allclose(scores_of(model, items), logits, atol=1e-5)
    classify = pipeline("text-classification", str(tmp_path / "model"), top_k=None)
    for text, answer in zip(TEXTS, model.predict(examples, "fp32"), strict=True):
        [answers] = classify([text])
        found = {each["label"]: each["score"] for each in answers}
        expected = dict(zip(answer.labels, answer.probabilities, strict=True))
        assert expected == pytest.approx({label: found[label] for label in expected}, abs=1e-5)
        assert several or max(found, key=found.__getitem__) == answer.label


def test_pairs(load, tmp_path):
    model = InferenceModel.from_examples(load(), InferenceConfig(), PAIRS)
    model = spread(model, tmp_path / "model")
    sides = [list(side) for side in zip(*((p.first, p.second) for p in PAIRS), strict=True)]
    logits = theirs(AutoModelForSequenceClassification, tmp_path / "model", *sides)
    items, _ = model.training_items(PAIRS)
    assert torch.allclose(scores_of(model, items), logits, atol=1e-5)
    classify = pipeline("text-classification", str(tmp_path / "model"))
    for pair, answer in zip(PAIRS, model.predict(PAIRS, "fp32"), strict=True):
        found = classify({"text": pair.first, "text_pair": pair.second})
        assert (found["label"], found["score"]) == (
            answer.label,
            pytest.approx(answer.probabilities[0], abs=1e-5),
        )


def test_rankings(load, tmp_path):
    question = RankingExample(TEXTS[0], tuple(Answer(t, int(t == TEXTS[1])) for t in TEXTS))
    model = RankingModel.from_examples(load(), RankingConfig(), [question])
    model = spread(model, tmp_path / "model")
    [answer] = model.predict([question], "fp32")
    logits = theirs(
        AutoModelForSequenceClassification, tmp_path / "model", [TEXTS[0]] * 3, list(TEXTS)
    )
    assert answer.scores == pytest.approx(logits[:, 0].tolist(), abs=1e-5)


def test_marked_texts_as_a_whole(load, relations, tmp_path):
    model = RelationModel.from_examples(load(), RelationConfig(head="text"), relations)
    model = spread(model, tmp_path / "model")
    texts = [anonymise(example).text for example in relations]
    logits = theirs(AutoModelForSequenceClassification, tmp_path / "model", texts)
    items, _ = model.training_items(relations)
    assert torch.allclose(scores_of(model, items), logits, atol=1e-5)


@pytest.mark.parametrize("kind", ["spans", "markers"])
def test_heads_that_transformers_lacks_do_not_open_there(
    kind, load, documents, relations, tmp_path
):
    model = (
        NerModel.from_examples(load(), NerConfig(head="spans", overlap=4), documents)
        if kind == "spans"
        else RelationModel.from_examples(load(), RelationConfig(), relations)
    )
    write_model(tmp_path / "model", model, {})
    with pytest.raises((ValueError, OSError)):
        AutoModelForTokenClassification.from_pretrained(tmp_path / "model")
    AutoModel.from_pretrained(tmp_path / "model" / "encoder")


SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "pad_token_id": 0,
}
FAMILIES = {
    "roberta": RobertaConfig(**SIZES, max_position_embeddings=70),
    "deberta": DebertaV2Config(**SIZES, relative_attention=True, position_buckets=8),
    "electra": ElectraConfig(**SIZES, embedding_size=16),
    "distilbert": DistilBertConfig(dim=16, n_layers=2, n_heads=2, hidden_dim=16),
    "modernbert": ModernBertConfig(**SIZES, bos_token_id=2, eos_token_id=3),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_its_own_last_layers(family, documents, tmp_path):
    tokenizer = tiny_tokenizer(TEXTS)
    config = FAMILIES[family]
    config.vocab_size = len(tokenizer)
    torch.manual_seed(0)
    AutoModel.from_config(config).save_pretrained(tmp_path / "encoder")
    tokenizer.save_pretrained(tmp_path / "encoder")

    def load():
        return TextEncoder.from_pretrained(tmp_path / "encoder", pooling="mean", max_length=32)

    ner = NerModel.from_examples(load(), NerConfig(types="keep", overlap=4), documents)
    ner = spread(ner, tmp_path / "ner")
    items, _ = ner.training_items(documents)
    logits = theirs(AutoModelForTokenClassification, tmp_path / "ner", [d.text for d in documents])
    for row, (item, own) in enumerate(zip(items, scores_of(ner, items), strict=True)):
        expected = logits[row, list(item.positions)]
        assert torch.allclose(own[: item.n_words], expected, atol=1e-5)
    pairs = spread(
        InferenceModel.from_examples(load(), InferenceConfig(), PAIRS), tmp_path / "pair"
    )
    items, _ = pairs.training_items(PAIRS)
    sides = [[p.first for p in PAIRS], [p.second for p in PAIRS]]
    logits = theirs(AutoModelForSequenceClassification, tmp_path / "pair", *sides)
    assert torch.allclose(scores_of(pairs, items), logits, atol=1e-5)


def test_dropout_is_that_of_the_task(load, documents):
    model = NerModel.from_examples(load(), NerConfig(overlap=4, dropout=0.3), documents)
    assert model.network.model.dropout.p == 0.3


def test_scores_are_in_32_bits_under_autocast(load, documents):
    """In bfloat16 different scores would often be equal."""
    model = NerModel.from_examples(load(), NerConfig(overlap=4), documents)
    items, _ = model.training_items(documents)
    with torch.autocast("cpu", torch.bfloat16), torch.inference_mode():
        (scores,) = model.network(model.network.collate(items))
    assert not torch.equal(scores, scores.bfloat16().float())


def test_a_model_without_labels_in_transformers_is_refused(load):
    encoder = load()
    encoder.model = encoder.model.encoder
    encoder.model.config = load().model.config
    with pytest.raises(ConfigError, match="expected a BertModel, as BertForSequence"):
        ClassificationModel(encoder, ClassificationConfig(), ("a", "b"))


def test_a_model_of_the_layout_before_is_refused_in_one_line(load, tmp_path):
    write_model(tmp_path / "m", NerModel(load(), NerConfig(overlap=4), ("X",)), {})
    manifest = tmp_path / "m" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"version": 2', '"version": 1'))
    with pytest.raises(StoreError, match=r"of version 1, .* train the model again") as caught:
        open_task(tmp_path / "m")
    assert "\n" not in str(caught.value)
