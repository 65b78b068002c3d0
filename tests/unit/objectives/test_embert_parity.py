"""Heads and losses of EMBERT's three objectives against a reference of the paper's equations."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file

from biograft.objectives import (
    CONSISTENT,
    HEAD_OFFSET,
    IGNORED,
    SEGMENT_ENDS,
    BidirectionalEntityMasking,
    BidirectionalEntityMaskingConfig,
    ContextEntityConsistency,
    ContextEntityConsistencyConfig,
    EntitySegmentation,
    EntitySegmentationConfig,
    Setting,
    TensorBatch,
    TextStates,
)

SETTING = Setting(mask=4, n_tokens=60, special=(0, 1, 2, 3, 4), width=20)
EXACT = {"rtol": 1e-9, "atol": 1e-12}
CONSISTENCY = {
    "inner.dense.weight": "W1",
    "inner.norm.weight": "ln_eccp_gain",
    "inner.norm.bias": "ln_eccp_bias",
    "classes.weight": "W2",
}
SEGMENTATION = {
    "inner.dense.weight": "W4",
    "inner.norm.weight": "ln_est_gain",
    "inner.norm.bias": "ln_est_bias",
    "outer.weight": "W3",
    "outer.bias": "b",
    "classes.weight": "W5",
}
MASKING = {
    "position.weight": "position_embedding",
    "inner.dense.weight": "W6",
    "inner.norm.weight": "ln_bem_1_gain",
    "inner.norm.bias": "ln_bem_1_bias",
    "outer.dense.weight": "W7",
    "outer.norm.weight": "ln_bem_2_gain",
    "outer.norm.bias": "ln_bem_2_bias",
}


@pytest.fixture
def arrays(shared_data):
    return load_file(shared_data("parity/embert/heads.safetensors"))


@pytest.fixture
def expected(shared_data):
    return json.loads(shared_data("parity/embert/losses.json").read_text())


def filled(head, arrays, names):
    """Give a head the reference's weights; every parameter must have one."""
    head.double().load_state_dict({own: arrays[f"weight.{name}"] for own, name in names.items()})
    return head


def states(arrays):
    return TextStates(
        final=arrays["input.states"],
        token_scores=lambda some: some,
        embeddings=arrays["weight.word_embedding"],
    )


def batch(arrays, mentions, token_labels, mention_labels):
    tokens = arrays["input.token_ids"]
    return TensorBatch(
        tokens=tokens,
        mask=torch.ones_like(tokens),
        segments=torch.zeros_like(tokens),
        mentions=mentions,
        entities=torch.full_like(mentions[:, 0], -1),
        token_labels=token_labels,
        mention_labels=mention_labels,
        labels={},
    )


def consistency(arrays):
    made = ContextEntityConsistency(ContextEntityConsistencyConfig(), SETTING)
    filled(made.head, arrays, CONSISTENCY)
    rows = arrays["input.replaced_entities"]
    return made, batch(arrays, rows[:, :3], {}, {CONSISTENT: rows[:, 3]})


def segmentation(arrays, reduction="mean"):
    made = EntitySegmentation(EntitySegmentationConfig(reduction=reduction), SETTING)
    filled(made.head, arrays, SEGMENTATION)
    labels = {SEGMENT_ENDS: arrays["input.segment_labels"]}
    return made, batch(arrays, torch.zeros(0, 3, dtype=torch.int64), labels, {})


def masking(arrays, reduction="mean"):
    """Both parts of all entities are predicted, as in the reference."""
    config = BidirectionalEntityMaskingConfig(position_dim=8, max_tokens=10, reduction=reduction)
    made = BidirectionalEntityMasking(config, SETTING)
    filled(made.head[0], arrays, MASKING)
    rows, tokens = arrays["input.long_entities"], arrays["input.token_ids"]
    order = torch.argsort(rows[:, 0], stable=True)  # mentions go by sequences
    labels = {f"bidirectional_entity_masking.{part}": torch.full_like(tokens, IGNORED)
              for part in made.terms}  # fmt: skip
    for sequence, first, middle, start, last in rows.tolist():
        for part, (begin, end) in {"adjective": (first, middle), "head": (start, last)}.items():
            there = (sequence, slice(begin, end + 1))
            labels[f"bidirectional_entity_masking.{part}"][there] = tokens[there]
    mentions = rows[order][:, [0, 1, 4]]
    return made, batch(arrays, mentions, labels, {HEAD_OFFSET: rows[order, 3] - rows[order, 1]})


def loss_of(made, given, arrays):
    losses = [term.loss(states(arrays), given)[0].detach() for term in made.terms.values()]
    return float(sum(losses))


def test_consistency_is_classified_from_the_neighbours(arrays, expected):
    made, given = consistency(arrays)
    sequence, first, last = given.mentions.unbind(1)
    before, after = (arrays["input.states"][sequence, token] for token in (first - 1, last + 1))
    inner = made.head.inner(torch.cat([before, after], -1))
    torch.testing.assert_close(inner, arrays["out.eccp_y"], **EXACT)
    found = made.head(before, after).log_softmax(-1)
    torch.testing.assert_close(found, arrays["out.eccp_log_probabilities"], **EXACT)
    wanted = 2 * expected["eccp"]["mean_over_entities"]
    assert loss_of(made, given, arrays) == pytest.approx(wanted, rel=1e-9)


def test_segmentation_scores_every_token(arrays, expected):
    made, given = segmentation(arrays)
    found = made.head(arrays["input.states"]).log_softmax(-1)
    torch.testing.assert_close(found, arrays["out.est_log_probabilities"], **EXACT)
    wanted = 2 * expected["est"]["mean_over_labelled_tokens"]
    assert loss_of(made, given, arrays) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize(("part", "name"), [("head", "atom"), ("adjective", "adjective")])
def test_a_part_is_predicted_from_the_other(arrays, expected, part, name):
    made, given = masking(arrays)
    term = made.terms[part]
    tokens = term.masked_tokens(given)
    rows = arrays[f"out.bem_{name}_rows"]
    order = torch.argsort(rows[:, 1], stable=True)
    assert tokens.sequence.tolist() == rows[order, 1].tolist()
    assert tokens.position.tolist() == rows[order, 3].tolist()
    assert tokens.label.tolist() == rows[order, 4].tolist()
    final = arrays["input.states"]
    made_of = (
        final[tokens.sequence, tokens.first],
        final[tokens.sequence, tokens.last],
        tokens.position,
    )
    found = made.head[0](*made_of)
    torch.testing.assert_close(found, arrays[f"out.bem_{name}_y"][order], **EXACT)
    scores = (found @ arrays["weight.word_embedding"].T).log_softmax(-1)
    torch.testing.assert_close(scores, arrays[f"out.bem_{name}_log_probabilities"][order], **EXACT)
    loss, stats = term.loss(states(arrays), given)
    wanted = expected["bem"][name]["mean_over_tokens"]
    assert float(loss.detach()) == pytest.approx(0.5 * wanted, rel=1e-9)
    assert stats["loss"] == pytest.approx(wanted, rel=1e-9)


def test_the_means_of_both_directions_are_added_up(arrays, expected):
    wanted = 0.5 * expected["bem"]["both_directions_of_means"]
    assert loss_of(*masking(arrays), arrays) == pytest.approx(wanted, rel=1e-9)


def test_the_three_losses_together(arrays, expected):
    made = [consistency(arrays), segmentation(arrays), masking(arrays)]
    total = sum(loss_of(*each, arrays) for each in made)
    wanted = expected["weighted_without_bert_loss"]["means_throughout"]
    assert total == pytest.approx(wanted, rel=1e-9)


def test_sequence_sums_are_those_of_the_reference(arrays, expected):
    """The reference sums over its batch of three sequences; an update takes the mean."""
    made = [segmentation(arrays, "sequence_sum"), masking(arrays, "sequence_sum")]
    sums = [3 * loss_of(*each, arrays) for each in made]
    assert sums[0] == pytest.approx(2 * expected["est"]["sum"], rel=1e-9)
    assert sums[1] == pytest.approx(0.5 * expected["bem"]["both_directions_sum"], rel=1e-9)
    total = loss_of(*consistency(arrays), arrays) + sum(sums)
    wanted = expected["weighted_without_bert_loss"]["paper_reductions"]
    assert total == pytest.approx(wanted, rel=1e-9)
