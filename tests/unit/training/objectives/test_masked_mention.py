"""Masked mention modelling: the loss against plain loops, and its gradients."""

from __future__ import annotations

import pytest
import torch
from graph_examples import Reader, batches, sequence, setting, text_states

from biograft.training.objectives import MaskedMention, MaskedMentionConfig

TEXT = [
    sequence([(0, 1, 5), (2, 2, 9), (4, 6, 0), (7, 7, -1)], masked=(2, 4, 5, 6, 7)),
    sequence([]),
    sequence([(1, 1, 5), (3, 4, 11)], masked=(1, 3), tokens=range(12)),
]
SELECTED = {
    "masked": [(0, 2, 2), (0, 4, 6), (2, 1, 1)],
    "all": [(0, 0, 1), (0, 2, 2), (0, 4, 6), (2, 1, 1), (2, 3, 4)],
}


def vectors():
    rng = torch.Generator().manual_seed(9)
    return torch.randn(60, 6, dtype=torch.float64, generator=rng).requires_grad_()


def objective(visibility="masked", **options):
    config = MaskedMentionConfig(**options)
    return MaskedMention(config, setting(None, visibility, embeddings=vectors()))


def originals(row):
    """The original tokens of a sequence, before masking."""
    labels, tokens = TEXT[row].token_labels["masked_tokens"], TEXT[row].tokens
    return [int(was if was >= 0 else now) for was, now in zip(labels, tokens, strict=True)]


def read_by_hand(rows, weight):
    """The reader of these tests on one mention: vectors (tokens, width) to numbers."""
    mean = [sum(row[i] for row in rows) / len(rows) for i in range(6)]
    sums = [sum(mean[i] * weight[i][j] for i in range(6)) for j in range(4)]
    return torch.tensor(sums, dtype=torch.float64).tanh().tolist()


@pytest.mark.parametrize("visibility", ["masked", "all"])
@pytest.mark.parametrize("reduction", ["mse", "mean", "sequence_sum"])
def test_the_loss_is_that_of_plain_loops(visibility, reduction):
    made, reader = objective(visibility, reduction=reduction, weight=2.0), Reader()
    states = text_states(3, None, reader)
    text, batch = batches(made, TEXT)
    final, table, weight = (
        each.detach().tolist() for each in (states.final, vectors(), reader.weight)
    )
    total = 0.0
    for row, first, last in SELECTED[visibility]:
        found = read_by_hand(final[row][first : last + 1], weight)
        were = [table[token] for token in originals(row)[first : last + 1]]
        wanted = read_by_hand(were, weight)
        total += sum((a - b) ** 2 for a, b in zip(found, wanted, strict=True))
    n_counted = 3 if reduction == "sequence_sum" else len(SELECTED[visibility])
    assert made.count(text) == n_counted
    total /= 4 if reduction == "mse" else 1  # dimensions
    loss, stats = made.loss(states, batch)
    assert stats == {"loss": pytest.approx(total / n_counted, rel=1e-9)}
    assert float(loss.detach()) == pytest.approx(2 * total / n_counted, rel=1e-9)


def test_the_input_embeddings_are_a_frozen_copy():
    given = vectors()
    made = MaskedMention(MaskedMentionConfig(), setting(embeddings=given))
    with torch.no_grad():
        given.zero_()
    assert torch.equal(made.head.vectors, vectors())
    assert [parameter.requires_grad for parameter in made.head.parameters()] == [False]
    assert list(made.head.state_dict()) == ["vectors"]
