"""Configuration of a linker."""

from __future__ import annotations

import math
from dataclasses import dataclass

from biograft.config import check_choice
from biograft.errors import ConfigError
from biograft.linking.dense.config import SIMILARITIES


@dataclass(frozen=True, kw_only=True)
class LinkerConfig:
    """Settings of a linker."""

    k: int = 5
    """Number of candidates returned for each mention."""
    depth: int = 64
    """Number of names retrieved from each generator."""
    threshold: float | None = None
    """Answers with a lower probability (without calibration: a lower score) are NIL."""
    abbreviations: bool = True
    """Expand abbreviations that are defined in the document."""
    composites: bool = True
    """Split composite mentions into their parts."""
    languages: tuple[str, ...] = ()
    """Search names in these languages only; empty means all."""
    stop_words: tuple[str, ...] = ()
    """Names that the linker never takes for a mention when it detects mentions itself."""
    similarity: str | None = None
    """Similarity of dense search, ``cosine`` or ``dot``; None means that of the index."""

    def __post_init__(self) -> None:
        for field in ("k", "depth"):
            if getattr(self, field) < 1:
                raise ConfigError(f"{field}: expected at least 1, found {getattr(self, field)}")
        if self.similarity is not None:
            check_choice("similarity", self.similarity, SIMILARITIES)
        if self.threshold is not None and not math.isfinite(self.threshold):
            raise ConfigError(f"threshold: expected a number, found {self.threshold}")
