"""Trained linkers: what mentions with known concepts teach about ranking candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify as lazify

if TYPE_CHECKING:
    from biograft.linking.supervised.config import RankerConfig as RankerConfig
    from biograft.linking.supervised.ranker import (
        TrainedRanker as TrainedRanker,
        open_trained_ranker as open_trained_ranker,
    )
    from biograft.linking.supervised.training import (
        grow_store as grow_store,
        train_network as train_network,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
