"""Entity segmentation (EMBERT): phrase mining, cut points, adjective part and head of names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft.text.segmentation.config import (
        PhraseConfig as PhraseConfig,
        SegmentationConfig as SegmentationConfig,
    )
    from biograft.text.segmentation.folder import (
        Segmentation as Segmentation,
        build_segmentation as build_segmentation,
    )
    from biograft.text.segmentation.phrases import (
        Phrase as Phrase,
        mine_phrases as mine_phrases,
        read_phrases as read_phrases,
        write_phrases as write_phrases,
    )
    from biograft.text.segmentation.segmenter import (
        CutPoint as CutPoint,
        SegmentedEntity as SegmentedEntity,
        find_cut_points as find_cut_points,
        read_cut_points as read_cut_points,
        write_cut_points as write_cut_points,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
