"""Models from scratch: initial embeddings against plain loops, tokenizers, sizes."""

from __future__ import annotations

import math
from collections import Counter

import pytest
import torch
from transformers import AutoTokenizer

from biograft.models import NewBert, TextEncoder, load_masked_lm, make_character_encoder

WINDOW = 4
"""Tokens at most so far apart are counted together."""


def information(sequences, n_tokens):
    """The positive pointwise mutual information of tokens, by plain loops."""
    joint = Counter()
    for sequence in sequences:
        for position, token in enumerate(sequence):
            for distance in range(1, WINDOW + 1):
                if position + distance < len(sequence):
                    other = sequence[position + distance]
                    joint[token, other] += 1 / distance
                    joint[other, token] += 1 / distance
    alone = Counter()
    for (token, _), count in joint.items():
        alone[token] += count
    total = sum(count**0.75 for count in alone.values())
    found = torch.zeros(n_tokens, n_tokens)
    for (token, other), count in joint.items():
        found[token, other] = max(
            0.0, math.log(count / (alone[token] * alone[other] ** 0.75 / total))
        )
    return found


def test_products_of_tokens_are_those_of_the_decomposition():
    texts = ["糖尿病肾病", "糖尿病足", "高血压肾病", "肾病高发"] * 3
    made = NewBert(width=8, layers=1, heads=2, n_tokens=400, informed=True).create(texts, 0)
    sequences = made.tokenizer(texts, add_special_tokens=False)["input_ids"]
    matrix = information(sequences, len(made.tokenizer))
    left, sizes, _ = torch.linalg.svd(matrix)
    known = matrix.any(dim=1)
    expected = torch.nn.functional.normalize((left * sizes.sqrt())[known, :8], dim=1)
    vectors = made.model.get_input_embeddings().weight.detach()[known]
    assert known.sum() > 8
    torch.testing.assert_close(vectors @ vectors.T, expected @ expected.T, atol=1e-3, rtol=0)


def test_a_new_bert_begins_with_them():
    texts = ["糖尿病肾病", "糖尿病足", "高血压肾病"] * 5
    sizes = {"width": 16, "layers": 1, "heads": 2, "feed_forward": 32, "n_tokens": 400}
    made = NewBert(**sizes, max_length=32, informed=True).create(texts, 0)
    plain = NewBert(**sizes, max_length=32).create(texts, 0)
    vectors = made.model.get_input_embeddings().weight
    assert torch.allclose(vectors[1:].norm(dim=1), torch.ones(len(vectors) - 1), atol=1e-5)
    assert not vectors[0].any()
    assert made.model.get_output_embeddings().weight is vectors
    positions = made.model.bert.embeddings.position_embeddings.weight.detach()
    products = positions @ positions.T
    for distance in range(32):  # equally distant positions are equally similar
        along = products.diagonal(distance)
        assert torch.allclose(along, along[0].expand_as(along), atol=1e-5)
    assert products[0, 1] > products[0, 2] > products[0, 3]
    one, other = made.model.bert.encoder.state_dict(), plain.model.bert.encoder.state_dict()
    assert all(torch.equal(one[name], other[name]) for name in one)
    again = NewBert(**sizes, max_length=32, informed=True).create(texts, 0)
    assert torch.equal(again.model.get_input_embeddings().weight, vectors)


TEXTS = ["患者有急性心肌梗死病史，服用 Aspirin 100mg。", "血压正常，Aspirin 有效。患者出院。"] * 3
SMALL = NewBert(width=16, layers=1, heads=2, feed_forward=32, n_tokens=400, max_length=32)


@pytest.fixture(scope="module")
def made():
    return SMALL.create(TEXTS, 0)


def test_a_chinese_character_is_a_token_and_other_words_are_subwords(made):
    tokens = made.tokenizer.tokenize("患者服用 aspirin。")
    assert tokens[:4] == ["患", "者", "服", "用"]
    assert "".join(tokens[4:]).replace("##", "") == "aspirin。"
    assert made.tokenizer.convert_tokens_to_ids(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]) == [
        0,
        1,
        2,
        3,
        4,
    ]
    assert made.tokenizer.tokenize("龘") == ["[UNK]"]


def test_equal_texts_and_seeds_give_equal_models(made):
    again, other = SMALL.create(iter(TEXTS), 0), SMALL.create(TEXTS, 1)
    assert again.tokenizer.get_vocab() == made.tokenizer.get_vocab()
    for name, weights in made.model.state_dict().items():
        assert torch.equal(weights, again.model.state_dict()[name])
    differ = [
        not torch.equal(a, b)
        for a, b in zip(made.model.parameters(), other.model.parameters(), strict=True)
    ]
    assert any(differ)


def test_the_folder_is_a_bert_as_any_other(made, tmp_path):
    made.model.save_pretrained(tmp_path)
    made.tokenizer.save_pretrained(tmp_path)
    loaded = load_masked_lm(tmp_path)
    assert not loaded.new_head
    given = torch.tensor([made.tokenizer("患者有效")["input_ids"]])
    made.model.eval()
    assert torch.allclose(loaded.model.eval()(given).logits, made.model(given).logits)
    assert AutoTokenizer.from_pretrained(tmp_path).tokenize("患者") == ["患", "者"]


NAMES = ["Heart attack", "心肌梗死", "ﬁbrosis"]


@pytest.fixture
def make(tmp_path):
    def make(name, **options):
        make_character_encoder(NAMES, tmp_path / name, width=16, layers=1, **options)
        return TextEncoder.from_pretrained(tmp_path / name, pooling="mean")

    return make


def test_every_character_of_the_names_is_a_token(make):
    encoder = make("a")
    tokens = encoder.tokenize(["HEART fib", "心肌"])["input_ids"].tolist()
    known = encoder.tokenizer.convert_ids_to_tokens(tokens[0])
    assert known == ["[CLS]", *"heart fib", "[SEP]"]
    assert encoder.tokenizer.convert_ids_to_tokens(tokens[1])[:4] == ["[CLS]", "心", "肌", "[SEP]"]
    assert "[UNK]" in encoder.tokenizer.convert_ids_to_tokens(
        encoder.tokenize(["骨"])["input_ids"][0].tolist()
    )
