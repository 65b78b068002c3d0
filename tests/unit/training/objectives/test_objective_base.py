"""What all objectives share: building, refusals, batches without a label, batches as tensors."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from graph_examples import LENGTH, WIDTH, Reader, batches, random_graph, random_table, setting
from tiny_models import tiny_tokenizer

from biograft.errors import ConfigError
from biograft.training.objectives import (
    CONSISTENT,
    FOLLOWS,
    HEAD_OFFSET,
    IGNORED,
    OBJECTIVES,
    SEGMENT_ENDS,
    LossTerm,
    Objective,
    Setting,
    TextExample,
    TextStates,
)

NAMES = list(OBJECTIVES)


@pytest.mark.parametrize("name", NAMES)
def test_an_objective_is_built_of_a_configuration_and_a_setting(name):
    fields = {
        "graph": random_graph(),
        "embeddings": torch.zeros(7, 4),
        "encoder": torch.nn.Identity(),
    }
    setting = Setting.of(tiny_tokenizer(["a b"]), width=4, **fields)
    config = OBJECTIVES.load(name)()
    objective = config.build(setting)
    assert isinstance(objective, Objective)
    assert objective.name == name
    for term in objective.terms.values():
        assert isinstance(term, LossTerm)
    for weight in (-1.0, math.inf, math.nan):
        with pytest.raises(ConfigError, match=f"weight: expected at least 0, found {weight}"):
            dataclasses.replace(config, weight=weight)


BIDIRECTIONAL = "bidirectional_entity_masking"
NEIGHBOUR = "masked_neighbour"


ENCODER = torch.nn.Linear(1, 1)


def text_objective(name, **options):
    given = setting(
        random_graph(),
        embeddings=torch.zeros(60, WIDTH),
        entity_counts=np.ones(20, np.int64),
        encoder=ENCODER,
        first=2,
        separator=3,
    )
    return OBJECTIVES.load(name)(**options).build(given)


def states(n_mentions, **changes):
    """Random states of one sequence, and the parts of a model that objectives read."""
    final = torch.randn(1, LENGTH, WIDTH).double().requires_grad_()
    parts = {
        "final": final,
        "token_scores": lambda some: some.sum(-1, keepdim=True).expand(-1, 60),
        "embeddings": torch.randn(60, WIDTH).double().requires_grad_(),
        "queries": torch.randn(n_mentions, 4).double().requires_grad_(),
        "table": random_table(trained=True),
        "read_mentions": Reader(),
        "encode": lambda *_: final,
    }
    return TextStates(**parts | changes)


def labelled(mentions, follows=IGNORED):
    """Mentions of unknown kind in a sequence of special tokens: nothing can be predicted."""
    none = np.full(LENGTH, IGNORED)
    of_mentions = np.full(len(mentions), IGNORED)
    return TextExample(
        tokens=np.full(LENGTH, 2),
        segments=(np.arange(LENGTH) > 1).astype(np.int64),
        words=np.full(LENGTH, -1),
        mentions=np.array(mentions, np.int64).reshape(-1, 3),
        token_labels={"masked_tokens": none, SEGMENT_ENDS: none},
        mention_labels={HEAD_OFFSET: of_mentions, CONSISTENT: of_mentions},
        labels={FOLLOWS: follows},
    )


OF_TEXT = [name for name in NAMES if OBJECTIVES.load(name).stream_kind == "annotated_text"]
SOME_TOKENS = ("entity_detection", "name_geometry")
"""Tokens outside of mentions are labelled, too; names count whatever they are."""


@pytest.mark.parametrize("mentions", [[], [(3, 4, -1)]], ids=["no mention", "unknown entity"])
@pytest.mark.parametrize("name", [name for name in OF_TEXT if name not in SOME_TOKENS])
def test_without_a_label_loss_and_gradients_are_zero(name, mentions):
    made = text_objective(name)
    if made.head is not None:
        made.head.double()
    follows = 0 if name == "sentence_order" else IGNORED  # random segments have no order
    text, batch = batches(made, [labelled(mentions, follows=follows)])
    for term in made.terms.values():
        given = states(len(mentions))
        loss, stats = term.loss(given, batch)
        loss.backward()
        assert float(loss.detach()) == 0
        assert set(stats.values()) == {0.0}
        assert term.count(text) == 0 or getattr(made.config, "reduction", "") == "sequence_sum"
        learning = [given.final, given.table, *given.read_mentions.parameters()]
        learning += [] if made.head is None else made.head.parameters()
        assert not any(each.grad.any() for each in learning if each.grad is not None)


NARROW = torch.randn(60, 3)
MISSING = [
    ("entity_detection", {"detection": None}, "the model does not detect"),
    ("entity_linking", {"table": None, "queries": None}, "the model has no entity table"),
    ("entity_prediction", {"table": None}, "the model has no entity table"),
    ("entity_prediction", {"read_mentions": None}, "the model does not read mentions"),
    ("masked_mention", {"read_mentions": None}, "the model does not read mentions"),
    (NEIGHBOUR, {"table": None}, "the model has no entity table"),
    (NEIGHBOUR, {"read_mentions": None}, "the model does not read mentions"),
    (NEIGHBOUR, {"table": random_table(19)}, "19 entities of 4 dimensions, and the graph 20 of 4"),
    (BIDIRECTIONAL, {"embeddings": None}, "the model has no input embeddings"),
    (BIDIRECTIONAL, {"embeddings": NARROW}, "as wide as the states .* found 3"),
]


@pytest.mark.parametrize(("name", "changes", "message"), MISSING)
def test_models_without_what_is_read_are_refused(name, changes, message):
    made = text_objective(name)
    _, batch = batches(made, [labelled([(3, 4, 5)])])
    term = next(iter(made.terms.values()))
    with pytest.raises(ConfigError, match=f"{name}: .*{message}"):
        term.loss(states(1, **changes), batch)


def test_settings_without_what_is_read_are_refused():
    for name, message in (
        (NEIGHBOUR, r"neighbours of entities are known; add .* neighbour_attention"),
        ("masked_mention", "masked_mention: the input embeddings of the starting"),
        ("entity_prediction", "entity_prediction: there are no entities to replace"),
        ("name_geometry", "knowledge layers"),
    ):
        with pytest.raises(ConfigError, match=message):
            OBJECTIVES.load(name)().build(setting())
