"""Entities in pieces: phrases mined from text, cut points, long and short, adjective and head."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.corpus.segmentation.building import build_segmentation
    from biograft.corpus.segmentation.config import SegmentationConfig
    from biograft.corpus.segmentation.cut_points import (
        CutPoint,
        find_cut_points,
        read_cut_points,
        write_cut_points,
    )
    from biograft.corpus.segmentation.phrases import (
        Phrase,
        PhraseConfig,
        mine_phrases,
        read_phrases,
        write_phrases,
    )
    from biograft.corpus.segmentation.segmentation import Segmentation
    from biograft.corpus.segmentation.segmented import Segmented

__all__ = [
    "CutPoint",
    "Phrase",
    "PhraseConfig",
    "Segmentation",
    "SegmentationConfig",
    "Segmented",
    "build_segmentation",
    "find_cut_points",
    "mine_phrases",
    "read_cut_points",
    "read_phrases",
    "write_cut_points",
    "write_phrases",
]

_HERE = "biograft.corpus.segmentation"
_HOMES = {
    "CutPoint": f"{_HERE}.cut_points",
    "Phrase": f"{_HERE}.phrases",
    "PhraseConfig": f"{_HERE}.phrases",
    "Segmentation": f"{_HERE}.segmentation",
    "SegmentationConfig": f"{_HERE}.config",
    "Segmented": f"{_HERE}.segmented",
    "build_segmentation": f"{_HERE}.building",
    "find_cut_points": f"{_HERE}.cut_points",
    "mine_phrases": f"{_HERE}.phrases",
    "read_cut_points": f"{_HERE}.cut_points",
    "read_phrases": f"{_HERE}.phrases",
    "write_cut_points": f"{_HERE}.cut_points",
    "write_phrases": f"{_HERE}.phrases",
}

__getattr__ = load_on_use(__name__, _HOMES)
