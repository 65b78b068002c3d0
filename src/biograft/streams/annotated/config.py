"""What may be chosen of annotated text; the defaults are KeBioLM's settings."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from biograft.errors import ConfigError
from biograft.streams.annotated.replacing import ReplacementConfig

SHORTEST, LONGEST = 8, 32_767


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatedTextConfig:
    """Which annotated text to read, and how it becomes sequences of tokens.

    ``shards`` is a folder of `biograft corpus annotate`; its tokens are kept in ``cache`` (not
    given: beside it). With ``pack`` a sequence of at most ``max_length`` tokens holds several
    documents where they fit, else one or a part of one. ``two_segments`` parts every sequence in
    two at a sentence's end, as sentence_order and next_sentence want it; of these ``strangers``
    is the share whose second part is exchanged for one of another document. Where
    ``bucket_batches`` is above 0, batches are made by length within so many, so that less is
    padded; they then hold sequences of like length.

    A sequence has at most ``max_mentions`` mentions, the best-scored ones (0: no bound), none
    scored below ``min_score``; concepts found less than ``min_count`` times are no entities.

    ``segmentation`` is a folder of `biograft corpus segment`: long entities are known in pieces.
    With a table ``replacement`` copies of the documents are read, too, in which entities stand
    under other names of the store, or others stand in their place; they are not packed together,
    so that what is held out is held out in all its copies.
    """

    shards: Path
    cache: Path | None = None
    max_length: int = 512
    pack: bool = True
    two_segments: bool = False
    strangers: float = 0.0
    bucket_batches: int = 0
    max_mentions: int = 50
    min_score: float = 0.0
    min_count: int = 1
    segmentation: Path | None = None
    replacement: ReplacementConfig | None = None

    def __post_init__(self) -> None:
        if not SHORTEST <= self.max_length <= LONGEST:
            raise ConfigError(
                f"max_length: expected {SHORTEST} to {LONGEST}, found {self.max_length}"
            )
        for name in ("bucket_batches", "max_mentions", "min_score", "min_count"):
            if not getattr(self, name) >= 0:
                raise ConfigError(
                    f"{name}: expected a number of at least 0, found {getattr(self, name)}"
                )
        if not 0 <= self.strangers <= 1:
            raise ConfigError(f"strangers: expected a share from 0 to 1, found {self.strangers}")
        if self.two_segments and self.pack:
            raise ConfigError(
                "two_segments: its two parts are of one document, and pack puts several in a "
                "sequence; set pack = false"
            )
        if self.replacement is not None and self.pack:
            raise ConfigError(
                "replacement: a document and its copies are held out together, and pack puts "
                "several documents in a sequence; set pack = false"
            )
        if self.strangers and not self.two_segments:
            raise ConfigError("strangers: there is no second part to exchange; set two_segments")

    def decisive(self) -> dict[str, Any]:
        """Give what decides which sequences are made, as plain values."""
        chosen = asdict(self)
        left_out = {"shards", "cache", "strangers", "bucket_batches", "segmentation"}
        if self.replacement is None:
            left_out.add("replacement")
        return {key: chosen[key] for key in chosen if key not in left_out}
