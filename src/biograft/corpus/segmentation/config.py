"""How entities are segmented."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from biograft.corpus.segmentation.phrases import PhraseConfig
from biograft.corpus.segmentation.words import CHINESE, WORDS
from biograft.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class SegmentationConfig:
    """Which entities are long, and how those are split."""

    language: str = CHINESE
    """``zh``, or a language written with blanks (the rules for heads are English ones)."""
    long_from: int = 4
    """Characters of the shortest entity that may be long; elsewhere two words."""
    words: str = "rjieba"
    """Word segmenter of Chinese: ``rjieba``, or ``own``."""
    max_single: float = 0.4
    """Share of single characters above which the segmentation by phrases is used."""
    n_cut_points: int = 100
    min_cut_share: float = 0.6
    """Cut-point characters have segments part in at least this share of their places."""
    cut_points: Path | None = None
    """A reviewed file of cut points, instead of counting them."""
    phrases: PhraseConfig = field(default_factory=PhraseConfig)
    min_heads: int = 3
    """Other languages: words are a head if so many different words precede them in names."""

    def __post_init__(self) -> None:
        for name, lowest in (("long_from", 2), ("n_cut_points", 0), ("min_heads", 1)):
            if getattr(self, name) < lowest:
                raise ConfigError(
                    f"{name}: expected {lowest} or more, found {getattr(self, name)!r}"
                )
        for name in ("max_single", "min_cut_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name}: expected 0 to 1, found {getattr(self, name)!r}")
        if self.words not in WORDS:
            raise ConfigError(f"words: expected one of {', '.join(WORDS)}, found {self.words!r}")
