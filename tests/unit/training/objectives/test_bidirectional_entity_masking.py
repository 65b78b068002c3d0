"""Bidirectional entity masking: masked parts, the loss against plain loops, and learning."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hand_made_examples import (
    MASK,
    SETTING,
    example,
    layer,
    random_states,
)

from biograft.training.objectives import (
    IGNORED,
    BidirectionalEntityMasking,
    BidirectionalEntityMaskingConfig,
    TensorBatch,
    collate,
)

NAME = "bidirectional_entity_masking"
LONG = [(1, 5, 4, None), (7, 8, None, None), (10, 13, 11, None), (15, 18, 17, None)]
"""Three long mentions, of which adjective part and head have 3 + 2, 1 + 3 and 2 + 2 tokens."""
N_WORDS = 20


def objective(**options):
    config = BidirectionalEntityMaskingConfig(**{"position_dim": 5} | options)
    made = BidirectionalEntityMasking(config, SETTING)
    made.head.double()
    return made


def prepared(seed=0, given=None, **options):
    given = example(N_WORDS, LONG) if given is None else given
    made = objective(**{"entity_ratio": 1.0, "max_token_ratio": 1.0} | options)
    return made.prepare(given, np.random.default_rng([3, seed]))


def labels(made, part):
    return made.token_labels[f"{NAME}.{part}"]


def masked_parts(made):
    """Return the masked part of each mention, as its first and last token."""
    found = {}
    for row, (first, last) in enumerate(made.mentions[:, :2].tolist()):
        tokens = first + np.flatnonzero(made.tokens[first : last + 1] == MASK)
        if len(tokens):
            assert tokens.tolist() == list(range(tokens[0], tokens[-1] + 1))
            found[row] = (int(tokens[0]), int(tokens[-1]))
    return found


class TestMaskedParts:
    def test_one_part_of_each_long_mention_and_nothing_else(self):
        parts = {0: ((1, 3), (4, 5)), 2: ((10, 10), (11, 13)), 3: ((15, 16), (17, 18))}
        seen = set()
        for seed in range(40):
            made = prepared(seed)
            found = masked_parts(made)
            assert found.keys() == parts.keys()
            assert all(found[row] in parts[row] for row in parts)
            seen |= {(row, column) for row, column in found.items()}
            n_hidden = sum(last - first + 1 for first, last in found.values())
            assert (made.tokens == MASK).sum() == n_hidden
        assert len(seen) == 6  # each part of each mention is masked at times

    def test_labels_are_the_original_tokens_in_their_direction(self):
        original = example(N_WORDS, LONG).tokens
        for seed in range(10):
            made = prepared(seed)
            for row, (first, last) in masked_parts(made).items():
                is_head = first == LONG[row][2]
                own, other = ("head", "adjective") if is_head else ("adjective", "head")
                there = slice(first, last + 1)
                assert labels(made, own)[there].tolist() == original[there].tolist()
                assert (labels(made, other)[there] == IGNORED).all()
            n_labelled = sum(
                (labels(made, part) != IGNORED).sum() for part in ("head", "adjective")
            )
            assert n_labelled == (made.tokens == MASK).sum()

    def test_whole_mentions_are_fixed_and_only_those(self):
        made = prepared(entity_ratio=0.5, seed=1)
        chosen = masked_parts(made)
        assert 0 < len(chosen) < 3
        fixed = {column for row in chosen for column in range(LONG[row][0], LONG[row][1] + 1)}
        assert set(np.flatnonzero(made.fixed).tolist()) == fixed

    def test_the_ratio_is_exact_in_expectation_and_both_parts_are_equally_likely(self):
        n, n_chosen, n_heads = 600, [], 0
        made, given = objective(entity_ratio=0.4, max_token_ratio=1.0), example(N_WORDS, LONG)
        for seed in range(n):
            found = masked_parts(made.prepare(given, np.random.default_rng([3, seed])))
            n_chosen.append(len(found))
            n_heads += sum(LONG[row][2] == first for row, (first, _) in found.items())
        assert set(n_chosen) == {1, 2}
        assert np.mean(n_chosen) == pytest.approx(1.2, abs=4 * np.std(n_chosen) / math.sqrt(n))
        total = sum(n_chosen)
        assert n_heads == pytest.approx(total / 2, abs=4 * math.sqrt(total) / 2)

    @pytest.mark.parametrize(
        ("max_token_ratio", "expected"), [(0.1, 2), (0.15, 3), (0.29, 5), (0.35, 7)]
    )
    def test_no_more_than_the_bound_is_masked(self, max_token_ratio, expected):
        counts = [
            (prepared(seed, max_token_ratio=max_token_ratio).tokens == MASK).sum()
            for seed in range(60)
        ]
        assert max(counts) == expected
        assert min(counts) > 0

    def test_the_bound_is_not_rounded_down_for_inexact_ratios(self):
        mentions = [(first, first + 1, first + 1, None) for first in range(1, 100, 2)]
        made = prepared(given=example(100, mentions), max_token_ratio=0.29)
        assert (made.tokens == MASK).sum() == 29


def mlp(head, given):
    """Two layers LN(GELU(W .)) in plain loops."""
    weights = {name: value.tolist() for name, value in head.state_dict().items()}
    return layer(weights["outer.dense.weight"], layer(weights["inner.dense.weight"], given))


def examples(max_tokens=32):
    """Three sequences with masked parts and one without."""
    some = [prepared(seed, max_tokens=max_tokens) for seed in range(3)]
    return [*some, prepared(given=example(4, [(1, 2, None, None)]))]


@pytest.mark.parametrize("reduction", ["mean", "sequence_sum"])
@pytest.mark.parametrize("shared", [True, False])
def test_the_losses_are_those_of_plain_loops(reduction, shared):
    made = objective(reduction=reduction, shared_head=shared, max_tokens=2, weight=0.25)
    given = examples(max_tokens=2)
    batch, found = collate(given, 0), random_states(4, N_WORDS + 2)
    vectors, original = found.embeddings.tolist(), example(N_WORDS, LONG).tokens.tolist()
    losses, right = {"head": [], "adjective": []}, {"head": 0, "adjective": 0}
    for row, each in enumerate(given):
        final = found.final[row].tolist()
        for number, (begin, end) in masked_parts(each).items():
            first, last, start, _ = LONG[number]
            part = "head" if begin == start else "adjective"
            there = (first, start - 1) if part == "head" else (start, last)
            head = made.head[0 if part == "head" else -1]
            for column, token in enumerate(range(begin, min(end, begin + 1) + 1)):
                position = head.position.weight[column].tolist()
                state = mlp(head, final[there[0]] + final[there[1]] + position)
                scores = [sum(a * b for a, b in zip(state, of, strict=True)) for of in vectors]
                label = original[token]
                losses[part].append(math.log(sum(map(math.exp, scores))) - scores[label])
                right[part] += scores.index(max(scores)) == label
    for part, term in made.terms.items():
        loss, stats = term.loss(found, TensorBatch.of(batch))
        n = len(losses[part]) if reduction == "mean" else 4
        assert len(losses[part]) > 3
        assert term.count(batch) == n
        assert float(loss.detach()) == pytest.approx(0.25 * sum(losses[part]) / n, rel=1e-9)
        assert stats["loss"] == pytest.approx(sum(losses[part]) / n, rel=1e-9)
        assert stats["accuracy"] == pytest.approx(right[part] / len(losses[part]))
