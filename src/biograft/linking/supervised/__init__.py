"""Trained linkers: what mentions with known concepts teach about ranking candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.linking.supervised.config import RankerConfig
    from biograft.linking.supervised.growing import grow_store
    from biograft.linking.supervised.ranker import TrainedRanker, open_trained_ranker
    from biograft.linking.supervised.training import train_network

__all__ = ["RankerConfig", "TrainedRanker", "grow_store", "open_trained_ranker", "train_network"]

_HOMES = {
    "RankerConfig": "biograft.linking.supervised.config",
    "TrainedRanker": "biograft.linking.supervised.ranker",
    "grow_store": "biograft.linking.supervised.growing",
    "open_trained_ranker": "biograft.linking.supervised.ranker",
    "train_network": "biograft.linking.supervised.training",
}

__getattr__ = load_on_use(__name__, _HOMES)
