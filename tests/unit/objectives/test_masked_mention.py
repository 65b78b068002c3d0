"""The distance of mentions to what they were, against plain loops, and what learns by it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from graph_examples import Reader, batches, sequence, setting, text_states
from torch import nn

from biograft.errors import ConfigError
from biograft.objectives.configs import MaskedMentionConfig
from biograft.objectives.masked_mention import MaskedMention

TEXT = [
    sequence([(0, 1, 5), (2, 2, 9), (4, 6, 0), (7, 7, -1)], hidden=(2, 4, 5, 6, 7)),
    sequence([]),
    sequence([(1, 1, 5), (3, 4, 11)], hidden=(1, 3), tokens=range(12)),
]
ASKED = {
    "hidden": [(0, 2, 2), (0, 4, 6), (2, 1, 1)],
    "all": [(0, 0, 1), (0, 2, 2), (0, 4, 6), (2, 1, 1), (2, 3, 4)],
}


def vectors():
    rng = torch.Generator().manual_seed(9)
    return torch.randn(60, 6, dtype=torch.float64, generator=rng).requires_grad_()


def made_of(shown="hidden", **options):
    return MaskedMention(MaskedMentionConfig(**options), setting(None, shown, embeddings=vectors()))


def originals(row):
    """What the tokens of a sequence were, before masked_tokens hid some."""
    labels, tokens = TEXT[row].token_labels["masked_tokens"], TEXT[row].tokens
    return [int(was if was >= 0 else now) for was, now in zip(labels, tokens, strict=True)]


def read_by_hand(rows, weight):
    """The reader of these tests on one mention: vectors (tokens, width) to numbers."""
    mean = [sum(row[i] for row in rows) / len(rows) for i in range(6)]
    sums = [sum(mean[i] * weight[i][j] for i in range(6)) for j in range(4)]
    return torch.tensor(sums, dtype=torch.float64).tanh().tolist()


@pytest.mark.parametrize("shown", ["hidden", "all"])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_the_loss_is_that_of_plain_loops(shown, reduction):
    made, reader = made_of(shown, reduction=reduction, weight=2.0), Reader()
    states = text_states(3, None, reader)
    text, batch = batches(made, TEXT)
    final, table, weight = (
        each.detach().tolist() for each in (states.final, vectors(), reader.weight)
    )
    total = 0.0
    for row, first, last in ASKED[shown]:
        found = read_by_hand(final[row][first : last + 1], weight)
        were = [table[token] for token in originals(row)[first : last + 1]]
        wanted = read_by_hand(were, weight)
        total += sum((a - b) ** 2 for a, b in zip(found, wanted, strict=True))
    n_counted = len(ASKED[shown]) if reduction == "mean" else 3
    assert made.count(text) == n_counted
    loss, stats = made.loss(states, batch)
    assert stats == {"loss": pytest.approx(total / n_counted, rel=1e-9)}
    assert float(loss.detach()) == pytest.approx(2 * total / n_counted, rel=1e-9)


def test_what_else_is_in_a_batch_changes_nothing_for_a_mention():
    """A mention's share is the same in a longer batch, where its sequence is padded."""
    made = made_of("all", reduction="sum")
    reader = Reader()
    final = text_states(3).final.detach()
    longer = sequence([(0, 0, 3), (14, 15, 4)], hidden=(14,), n_tokens=16)

    def total(examples, states):
        _, batch = batches(made, examples)
        loss, _ = made.loss(replace(text_states(1, None, reader), final=states), batch)
        return float(loss.detach()) * len(examples)

    alone = [total([TEXT[row]], final[[row]]) for row in (0, 1, 2)]
    of_longer = torch.ones(1, 16, 6, dtype=torch.float64)
    alone.append(total([longer], of_longer))
    padded = torch.cat([final, torch.full((3, 4, 6), 7.0, dtype=torch.float64)], 1)
    together = total([*TEXT, longer], torch.cat([padded, of_longer]))
    assert together == pytest.approx(sum(alone), rel=1e-12)


def test_the_target_teaches_nothing_and_the_reader_learns_from_the_states_alone():
    made, reader = made_of(), Reader()
    states = text_states(3, None, reader)
    _, batch = batches(made, TEXT)
    made.loss(states, batch)[0].backward()
    with torch.no_grad():  # the gradient, where the target is a number
        wanted = reader(made.head(torch.tensor([originals(row) for row in range(3)])),
                        torch.tensor(ASKED["hidden"]))  # fmt: skip
    weight = reader.weight.detach().clone().requires_grad_()
    other = Reader()
    other.weight = nn.Parameter(weight.detach().clone())
    found = other(states.final.detach(), torch.tensor(ASKED["hidden"]))
    (4 * (found - wanted).square().sum() / 3).backward()
    torch.testing.assert_close(reader.weight.grad, other.weight.grad, rtol=1e-10, atol=1e-12)
    reached = states.final.grad.abs().sum(2).nonzero().tolist()
    assert reached == [[0, 2], [0, 4], [0, 5], [0, 6], [2, 1]]
    assert made.head.vectors.grad is None


def test_the_vectors_are_a_copy_that_stays():
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


def test_under_autocast_the_loss_is_of_single_precision_and_the_reader_learns():
    made = MaskedMention(MaskedMentionConfig(), setting(embeddings=vectors().float()))
    reader = Autocast()
    states = text_states(3, None, reader)
    _, batch = batches(made, TEXT)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss, _ = made.loss(replace(states, final=states.final.detach().float()), batch)
    loss.backward()
    assert loss.dtype == torch.float32
    assert reader.dense.weight.grad.any()


@pytest.mark.parametrize("mentions", [[], [(1, 2, -1)], [(1, 2, 3)]])
def test_without_a_hidden_mention_the_loss_is_zero_and_so_are_the_gradients(mentions):
    made, reader = made_of(), Reader()
    states = text_states(1, None, reader)
    text, batch = batches(made, [sequence(mentions)])
    assert made.count(text) == 0
    loss, stats = made.loss(states, batch)
    loss.backward()
    assert stats == {"loss": 0.0}
    for learning in (states.final, reader.weight):
        assert learning.grad is not None
        assert not learning.grad.any()


def test_all_mentions_need_nothing_that_hides_them():
    bare = [replace(example, token_labels={}) for example in TEXT]
    text, batch = batches(made_of("all"), bare)
    loss, _ = made_of("all").loss(text_states(3, None, Reader()), batch)
    assert float(loss.detach()) > 0
    assert made_of("all").count(text) == 5
    with pytest.raises(ConfigError, match=r"add objective\.masked_tokens, or choose all"):
        batches(made_of(), bare)


def test_missing_pieces_are_refused():
    with pytest.raises(ConfigError, match="masked_mention: the vectors of tokens of the starting"):
        MaskedMention(MaskedMentionConfig(), setting())
    with pytest.raises(ConfigError, match="masked_mention: the model does not read mentions"):
        made_of().loss(text_states(3), batches(made_of(), TEXT)[1])
    with pytest.raises(ConfigError, match="reduction: expected one of mean, sum, found 'total'"):
        MaskedMentionConfig(reduction="total")
