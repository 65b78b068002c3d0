"""Settings of entity segmentation."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from biograft.corpus.segmentation.phrases import PhraseConfig
from biograft.corpus.segmentation.words import CHINESE, WORD_SEGMENTERS
from biograft.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class SegmentationConfig:
    """Settings of long entities and their segmentation."""

    language: str = CHINESE
    """``zh``, or a language written with spaces (the rules for heads are English ones)."""
    long_from: int = 4
    """Minimum characters of a long Chinese entity; in other languages it is two words."""
    word_segmenter: str = "rjieba"
    """Chinese word segmenter: ``rjieba``, or ``unigram`` over names and phrases."""
    max_single: float = 0.4
    """Ratio of single characters above which the segmentation by phrases is used."""
    n_cut_points: int = 100
    min_cut_ratio: float = 0.6
    """Minimum ratio of occurrences at which a cut-point character is a segment boundary."""
    cut_points: Path | None = None
    """A reviewed file of cut points, used instead of counting them."""
    phrases: PhraseConfig = field(default_factory=PhraseConfig)
    min_heads: int = 3
    """In other languages, a head must be preceded by at least so many different words."""

    def __post_init__(self) -> None:
        for name, lowest in (("long_from", 2), ("n_cut_points", 0), ("min_heads", 1)):
            if getattr(self, name) < lowest:
                raise ConfigError(
                    f"{name}: expected {lowest} or more, found {getattr(self, name)!r}"
                )
        for name in ("max_single", "min_cut_ratio"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name}: expected 0 to 1, found {getattr(self, name)!r}")
        if self.word_segmenter not in WORD_SEGMENTERS:
            raise ConfigError(
                f"word_segmenter: expected one of {', '.join(WORD_SEGMENTERS)}, "
                f"found {self.word_segmenter!r}"
            )
