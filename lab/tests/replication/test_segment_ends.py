"""Ends of segments: the decisions, the halves, and the controls."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from tiny_models import tiny_encoder_folder
from toy_mentions import write_toy_mentions

from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.text.segmentation import Segmentation, build_segmentation
from biograft_lab.replication.segment_ends import (
    SegmentEndVariant,
    measure,
    one_hot,
    read_segmented,
    states_of,
)


@pytest.fixture
def toy(tmp_path):
    kb, texts = write_toy_mentions(tmp_path)
    base = KnowledgeBase.open(kb)
    build_segmentation(base, [texts], tmp_path / "segmentation")
    return base, Segmentation.open(tmp_path / "segmentation")


def test_decisions_are_the_segments_of_the_store_and_entities_are_in_one_half(toy):
    base, segmentation = toy
    names = read_segmented(base, segmentation, 100)
    assert len(names.names) == 10
    decisions = defaultdict(list)
    for name, is_end in zip(names.name_of.tolist(), names.is_end.tolist(), strict=True):
        decisions[names.names[name]].append(is_end)
    halves = defaultdict(set)
    for name, is_train in zip(names.name_of.tolist(), names.is_train.tolist(), strict=True):
        (match,) = base.find(names.names[name])
        halves[match.concept].add(is_train)
    for text, found in decisions.items():
        ends = {end for _, end in segmentation.segment(text).segments}
        assert found == [position in ends for position in range(1, len(text))]
    assert {len(half) for half in halves.values()} == {1}
    assert {True, False} == set().union(*halves.values())


def test_states_are_those_of_the_characters(toy, tmp_path):
    base, segmentation = toy
    names = read_segmented(base, segmentation, 100)
    encoder = tiny_encoder_folder(tmp_path / "encoder", names.names)
    features = states_of(encoder, names)
    again = states_of(encoder, names)
    np.testing.assert_array_equal(features, again)
    rows = defaultdict(list)
    for row, (character, position) in enumerate(
        zip(names.characters(0), names.position.tolist(), strict=True)
    ):
        rows[character, position, names.names[names.name_of[row]]].append(features[row])
    assert len({tuple(np.round(row[0], 3)) for row in rows.values()}) == len(rows)


def test_a_rule_that_the_features_hold_is_found_and_documents_are_names(toy):
    base, segmentation = toy
    names = read_segmented(base, segmentation, 100)
    told = np.column_stack([names.is_end, one_hot(names)]).astype(np.float32)
    row = measure(names, told, "true", 0.01)
    assert row["acc@1"] == row["f1"] == 100
    sizes = [int(size) for size in row["documents"].split()]
    assert sum(sizes) == row["n"] == (~names.is_train).sum()
    assert len(sizes) == len({*names.name_of[~names.is_train].tolist()})


@pytest.mark.long
def test_every_arm_is_probed_once_a_seed(smoke_rows):
    rows = smoke_rows("embert-segments")
    seeds = defaultdict(list)
    for row in rows:
        seeds[row["config"]].append(row.get("seed"))
    assert seeds["characters"] == seeds["start"] == [None]
    assert seeds["EMBERT"] == [1, 2]


def test_an_encoder_is_needed_to_read_states():
    for given in ({}, {"reads": "characters", "encoder": "runs/x"}):
        with pytest.raises(ConfigError, match="reads"):
            SegmentEndVariant(**given)
