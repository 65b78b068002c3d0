"""Masked mention modelling: the loss against plain loops, and its gradients."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from graph_examples import Reader, batches, sequence, setting, text_states, visible
from torch import nn

from biograft.errors import ConfigError
from biograft.objectives import MaskedMention, MaskedMentionConfig

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


def test_mixed_pulls_visible_masked_mentions_only():
    made = objective("mixed")
    text, batch = batches(made, TEXT * 10)
    read = []

    def reader(states, mentions):
        read.append(mentions.tolist())
        return torch.zeros(len(mentions), 4)

    made.loss(text_states(30, None, reader), batch)
    wanted = [[row + 3 * k, *span] for k in range(10) for row, *span in SELECTED["masked"]]
    assert read == [wanted, wanted]
    assert made.count(text) == len(wanted)
    assert sum(row is not None for row in visible(text)) > len(wanted)


@pytest.mark.parametrize(("reduction", "ratio"), [("mse", 1), ("mean", 8)])
def test_the_first_loss_does_not_depend_on_the_dimension(reduction, ratio):
    """The weight of 4 was right for no dimension but one: squares were summed over dimensions."""

    def first(dim):
        made = objective("all", reduction=reduction)
        rng = torch.Generator().manual_seed(dim)

        def read(states, mentions):
            return torch.randn(len(mentions), dim, generator=rng)

        _, batch = batches(made, TEXT * 20)
        return float(made.loss(text_states(60, None, read), batch)[0])

    assert first(512) / first(64) == pytest.approx(ratio, rel=0.05)
    assert MaskedMentionConfig() == MaskedMentionConfig(reduction="mse", weight=4.0)


def test_the_target_has_no_gradient():
    made, reader = objective(), Reader()
    states = text_states(3, None, reader)
    _, batch = batches(made, TEXT)
    made.loss(states, batch)[0].backward()
    with torch.no_grad():  # the gradient, where the target is a number
        wanted = reader(made.head(torch.tensor([originals(row) for row in range(3)])),
                        torch.tensor(SELECTED["masked"]))  # fmt: skip
    weight = reader.weight.detach().clone().requires_grad_()
    other = Reader()
    other.weight = nn.Parameter(weight.detach().clone())
    found = other(states.final.detach(), torch.tensor(SELECTED["masked"]))
    (4 * (found - wanted).square().mean()).backward()
    torch.testing.assert_close(reader.weight.grad, other.weight.grad, rtol=1e-10, atol=1e-12)
    reached = states.final.grad.abs().sum(2).nonzero().tolist()
    assert reached == [[0, 2], [0, 4], [0, 5], [0, 6], [2, 1]]
    assert made.head.vectors.grad is None


def test_the_input_embeddings_are_a_frozen_copy():
    given = vectors()
    made = MaskedMention(MaskedMentionConfig(), setting(embeddings=given))
    with torch.no_grad():
        given.zero_()
    assert torch.equal(made.head.vectors, vectors())
    assert [parameter.requires_grad for parameter in made.head.parameters()] == [False]
    assert list(made.head.state_dict()) == ["vectors"]


class Autocast(nn.Module):
    """A reader whose weights autocast turns to half precision."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(6, 4)

    def forward(self, states, mentions):
        return self.dense(states[mentions[:, 0], mentions[:, 1]])


def test_under_autocast_the_loss_is_float32_and_the_reader_is_trained():
    made = MaskedMention(MaskedMentionConfig(), setting(embeddings=vectors().float()))
    reader = Autocast()
    states = text_states(3, None, reader)
    _, batch = batches(made, TEXT)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss, _ = made.loss(replace(states, final=states.final.detach().float()), batch)
    loss.backward()
    assert loss.dtype == torch.float32
    assert reader.dense.weight.grad.any()


def test_all_visible_mentions_need_no_masking():
    bare = [replace(example, token_labels={}) for example in TEXT]
    text, batch = batches(objective("all"), bare)
    loss, _ = objective("all").loss(text_states(3, None, Reader()), batch)
    assert float(loss.detach()) > 0
    assert objective("all").count(text) == 5
    with pytest.raises(ConfigError, match=r"found none; add objective\.masked_tokens, or set"):
        batches(objective(), bare)
