"""Settings of corpus annotation: names, score threshold, number of spans, cleaning."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from biograft.corpus.cleaning import CleaningConfig
from biograft.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class AnnotationConfig:
    """The settings that determine the spans, unlike those of the execution (engine, workers)."""

    threshold: float = 0.85
    """Minimum score of a span: the probability if the linker is calibrated, else the score of its
    search; an exact name has 1, a name of the same normal form 0.99."""
    max_spans: int = 0
    """Maximum spans of a document: the best-scored, of these the longest, of these the first; 50
    per sequence in KeBioLM; 0: all."""
    abbreviations: bool = True
    """Whether to link an abbreviation that a document defines as its long form."""
    language: str = ""
    """Language of the names, and of the documents; empty: all."""
    stop_words: tuple[str, ...] = ()
    """Names never to match, such as *included*."""
    index: Path | None = None
    """The index that the linker searches, possibly a dense one; none: lexical search."""
    cleaning: CleaningConfig | None = field(default_factory=CleaningConfig)
    """How text is cleaned before; none: text stays as it is."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.threshold) and 0 <= self.threshold <= 1):
            raise ConfigError(f"threshold: expected 0 to 1, found {self.threshold}")
        if self.max_spans < 0:
            raise ConfigError(f"max_spans: expected 0 or more, found {self.max_spans}")

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of names, as arguments of a linker."""
        return (self.language,) if self.language else ()

    def to_json(self) -> dict[str, Any]:
        """Return all settings as plain values."""
        return {
            **asdict(self),
            "index": str(self.index) if self.index else None,
            "stop_words": list(self.stop_words),
        }
