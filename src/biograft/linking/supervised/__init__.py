"""Trained rankers: a small network over candidate features, trained on labelled mentions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft.linking.supervised.config import RankerConfig as RankerConfig
    from biograft.linking.supervised.ranker import (
        TrainedRanker as TrainedRanker,
        load_trained_ranker as load_trained_ranker,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
