"""How a linker links, and what an evaluation asks of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from biograft.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class LinkerConfig:
    """How a linker links."""

    k: int = 5
    """How many candidates each mention keeps."""
    depth: int = 64
    """How many names each generator is asked for."""
    threshold: float | None = None
    """The probability (without calibration: the score) below which an answer is NIL."""
    abbreviations: bool = True
    """Expand abbreviations that a document defines."""
    composites: bool = True
    """Take composite mentions apart."""
    languages: tuple[str, ...] = ()
    """Only names in these languages; none: all."""
    stop_words: tuple[str, ...] = ()
    """Names that are no mention where the linker finds mentions itself."""

    def __post_init__(self) -> None:
        for field in ("k", "depth"):
            if getattr(self, field) < 1:
                raise ConfigError(f"{field}: expected at least 1, found {getattr(self, field)}")
        if self.threshold is not None and not math.isfinite(self.threshold):
            raise ConfigError(f"threshold: expected a number, found {self.threshold}")


class Query(Protocol):
    """What an evaluation asks: the parts to look up, and the text they stand in."""

    @property
    def parts(self) -> tuple[str, ...]:
        """What is looked up, several texts for a composite mention."""

    @property
    def document(self) -> str:
        """Which document it stands in; equal ones stand together."""

    @property
    def context(self) -> str:
        """The whole text, empty if not known."""

    @property
    def start(self) -> int | None:
        """Where the mention begins in it."""

    @property
    def end(self) -> int | None:
        """Where it ends."""
