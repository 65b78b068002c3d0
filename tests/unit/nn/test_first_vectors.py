"""Vectors that a new model begins with, against plain loops."""

from __future__ import annotations

import math
from collections import Counter

import torch

from biograft.nn.scratch import REACH, vectors_of_places, vectors_of_tokens
from biograft.nn.scratch_configs import NewBert

SEQUENCES = [[5, 6, 7, 8, 9, 5], [5, 6, 10, 8], [11], [], [7, 7, 6, 5, 9, 10, 6, 8]]
N_TOKENS = 13


def information():
    """The matrix that is reduced, by plain loops."""
    joint = Counter()
    for sequence in SEQUENCES:
        for place, token in enumerate(sequence):
            for distance in range(1, REACH + 1):
                if place + distance < len(sequence):
                    other = sequence[place + distance]
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
    made = vectors_of_tokens(SEQUENCES, N_TOKENS, N_TOKENS, seed=0)
    assert known.sum() == 6
    assert torch.allclose(made[known] @ made[known].T, whole @ whole.T, atol=1e-4)
    assert torch.allclose(made.norm(dim=1), torch.ones(N_TOKENS), atol=1e-5)


def test_a_token_that_stands_alone_begins_at_random_and_seeds_differ():
    made = vectors_of_tokens(SEQUENCES, N_TOKENS, 4, seed=0)
    again = vectors_of_tokens(SEQUENCES, N_TOKENS, 4, seed=0)
    other = vectors_of_tokens(SEQUENCES, N_TOKENS, 4, seed=1)
    assert torch.equal(made, again)
    assert not torch.allclose(made[11], other[11])
    assert made.isfinite().all()
    nothing = vectors_of_tokens([], N_TOKENS, 4, seed=0)
    assert torch.allclose(nothing.norm(dim=1), torch.ones(N_TOKENS))


def test_places_equally_far_apart_are_equally_alike():
    places = vectors_of_places(32, 16)
    products = places @ places.T
    for distance in range(32):
        along = products.diagonal(distance)
        assert torch.allclose(along, along[0].expand_as(along), atol=1e-5)
    assert products[0, 1] > products[0, 2] > products[0, 3]
    assert vectors_of_places(3, 5).shape == (3, 5)


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
        made.model.bert.embeddings.position_embeddings.weight, vectors_of_places(32, 16)
    )
    one, other = made.model.bert.encoder.state_dict(), plain.model.bert.encoder.state_dict()
    assert all(torch.equal(one[name], other[name]) for name in one)
    again = NewBert(**sizes, max_length=32, informed=True).create(texts, 0)
    assert torch.equal(again.model.get_input_embeddings().weight, vectors)
