"""How text is annotated: which names, what score, how many spans, what is cleaned."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from biograft.corpus.cleaning import CleaningConfig
from biograft.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class AnnotationConfig:
    """What decides about the spans; where the work is done (engine, workers) changes nothing."""

    threshold: float = 0.85
    """Spans below this score are left out: the probability where the linker is calibrated, else
    the score of its search; a name as written has 1, one of the same form 0.99."""
    max_spans: int = 0
    """How many spans a document keeps: the best-scored, of these the longest, of these the
    first; 50 a sequence in KeBioLM; 0: all."""
    abbreviations: bool = True
    """Let an abbreviation that a document defines stand for its long form."""
    language: str = ""
    """Only names in this language, which is also noted as that of the documents; empty: all."""
    stop_words: tuple[str, ...] = ()
    """Names never to look for, such as *included*."""
    index: Path | None = None
    """The index that the linker searches, which may have vectors; none: one by letters."""
    cleaning: CleaningConfig | None = field(default_factory=CleaningConfig)
    """What is cleaned before; none: text stays as it is."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.threshold) and 0 <= self.threshold <= 1):
            raise ConfigError(f"threshold: expected 0 to 1, found {self.threshold}")
        if self.max_spans < 0:
            raise ConfigError(f"max_spans: expected 0 or more, found {self.max_spans}")

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of names, as a linker takes them."""
        return (self.language,) if self.language else ()

    def to_json(self) -> dict[str, Any]:
        """Give all settings as plain values."""
        return {
            **asdict(self),
            "index": str(self.index) if self.index else None,
            "stop_words": list(self.stop_words),
        }
