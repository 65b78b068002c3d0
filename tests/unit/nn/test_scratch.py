"""Models from scratch: initial embeddings against plain loops, tokenizers, sizes."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer

from biograft.errors import ConfigError
from biograft.nn import NewBert, TextEncoder, load_masked_lm, make_character_encoder
from biograft.nn.scratch import WINDOW, ppmi_token_vectors, sinusoidal_positions

SEQUENCES = [[5, 6, 7, 8, 9, 5], [5, 6, 10, 8], [11], [], [7, 7, 6, 5, 9, 10, 6, 8]]
N_TOKENS = 13


def information():
    """The matrix that is reduced, by plain loops."""
    joint = Counter()
    for sequence in SEQUENCES:
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
    found = torch.zeros(N_TOKENS, N_TOKENS)
    for (token, other), count in joint.items():
        found[token, other] = max(
            0.0, math.log(count / (alone[token] * alone[other] ** 0.75 / total))
        )
    return found


def test_products_of_tokens_are_those_of_the_whole_decomposition():
    matrix = information()
    left, sizes, _ = torch.linalg.svd(matrix)
    whole = left * sizes.sqrt()
    known = matrix.any(dim=1)
    whole = whole[known] / whole[known].norm(dim=1, keepdim=True)
    made = ppmi_token_vectors(SEQUENCES, N_TOKENS, N_TOKENS, seed=0)
    assert known.sum() == 6
    assert torch.allclose(made[known] @ made[known].T, whole @ whole.T, atol=1e-4)
    assert torch.allclose(made.norm(dim=1), torch.ones(N_TOKENS), atol=1e-5)


def test_a_token_that_stands_alone_begins_at_random_and_seeds_differ():
    made = ppmi_token_vectors(SEQUENCES, N_TOKENS, 4, seed=0)
    again = ppmi_token_vectors(SEQUENCES, N_TOKENS, 4, seed=0)
    other = ppmi_token_vectors(SEQUENCES, N_TOKENS, 4, seed=1)
    assert torch.equal(made, again)
    assert not torch.allclose(made[11], other[11])
    assert made.isfinite().all()
    nothing = ppmi_token_vectors([], N_TOKENS, 4, seed=0)
    assert torch.allclose(nothing.norm(dim=1), torch.ones(N_TOKENS))


def test_equally_distant_positions_are_equally_similar():
    positions = sinusoidal_positions(32, 16)
    products = positions @ positions.T
    for distance in range(32):
        along = products.diagonal(distance)
        assert torch.allclose(along, along[0].expand_as(along), atol=1e-5)
    assert products[0, 1] > products[0, 2] > products[0, 3]
    assert sinusoidal_positions(3, 5).shape == (3, 5)


def test_a_new_bert_begins_with_them():
    texts = ["糖尿病肾病", "糖尿病足", "高血压肾病"] * 5
    sizes = {"width": 16, "layers": 1, "heads": 2, "feed_forward": 32, "n_tokens": 400}
    made = NewBert(**sizes, max_length=32, informed=True).create(texts, 0)
    plain = NewBert(**sizes, max_length=32).create(texts, 0)
    vectors = made.model.get_input_embeddings().weight
    assert torch.allclose(vectors[1:].norm(dim=1), torch.ones(len(vectors) - 1), atol=1e-5)
    assert not vectors[0].any()
    assert made.model.get_output_embeddings().weight is vectors
    assert torch.equal(
        made.model.bert.embeddings.position_embeddings.weight, sinusoidal_positions(32, 16)
    )
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
        0, 1, 2, 3, 4,
    ]  # fmt: skip
    assert made.tokenizer.tokenize("龘") == ["[UNK]"]


def test_two_texts_are_two_segments(made):
    encoded = made.tokenizer("患者", "血压")
    assert encoded["token_type_ids"] == [0, 0, 0, 0, 1, 1, 1]
    assert made.tokenizer.convert_ids_to_tokens(encoded["input_ids"])[::3] == [
        "[CLS]", "[SEP]", "[SEP]",
    ]  # fmt: skip


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


def test_case_may_be_kept():
    cased = NewBert(width=16, layers=1, heads=2, n_tokens=400, lower=False).create(TEXTS, 0)
    assert "A" in "".join(cased.tokenizer.tokenize("Aspirin"))


def test_nothing_to_learn_tokens_from():
    with pytest.raises(ConfigError, match="expected texts to learn a tokenizer from"):
        SMALL.create([], 0)


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


def test_the_same_seed_makes_the_same_encoder(make):
    first, again, other = (make(name).encode(NAMES) for name in ("a", "b", "c"))
    assert first.shape == (3, 16)
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first, other)
    assert (make("d", seed=1).encode(NAMES) != first).any()
