"""Settings of corpus annotation: names, score threshold, number of spans, cleaning."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from biograft.config import check_choice
from biograft.corpus.cleaning import CleaningConfig
from biograft.errors import ConfigError
from biograft.linking.config import MENTIONS
from biograft.linking.lexical.index import NORMALISED


@dataclass(frozen=True, kw_only=True)
class AnnotationConfig:
    """The settings that determine the spans, unlike those of the execution (engine, workers)."""

    threshold: float = 0.85
    """Minimum score of a span: 1 of a name as written, 0.99 of one of the same normal form; of the
    long form of an abbreviation that is no name, the score of its search. A calibrated index gives
    probabilities. Text that is only similar to a name is not found, whatever the threshold."""
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
    mentions: str = "find"
    """``find`` names in the texts, take the mentions that documents have by the concept ids that
    these state (``given``), or ``both``: names count where they overlap no given mention."""
    cleaning: CleaningConfig | None = field(default_factory=CleaningConfig)
    """Cleaning of the text; None leaves it unchanged."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.threshold) and 0 <= self.threshold <= 1):
            raise ConfigError(f"threshold: expected 0 to 1, found {self.threshold}")
        check_choice("mentions", self.mentions, MENTIONS)
        if self.mentions != "find" and self.cleaning is not None:
            raise ConfigError(
                f"mentions: {self.mentions!r} needs the text as it is, since cleaning moves "
                "offsets; leave cleaning out (--no-clean)"
            )
        if self.max_spans < 0:
            raise ConfigError(f"max_spans: expected 0 or more, found {self.max_spans}")

    @property
    def threshold_matters(self) -> bool:
        """Whether the threshold can drop a span; else all are names, which score 0.99 or 1."""
        return self.abbreviations or self.index is not None or self.threshold > NORMALISED

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
