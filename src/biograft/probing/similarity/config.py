"""Which names are asked about, and among which look-alikes."""

from __future__ import annotations

from dataclasses import dataclass

from biograft.errors import ConfigError

PAIRS = ("all", "names", "relations")
LEAST_JACCARD, LEAST_SHARED = 0.75, 3
"""D2: how alike the neighbours of the two concepts must be."""
RARE = 200
"""D3: up to how often a rare name is found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarityConfig:
    """Which queries are made of a store."""

    same_as: tuple[str, ...] = ()
    """Relations that join concepts that are the same."""
    pairs: str = "all"
    """``names`` of one concept, of two concepts joined by ``relations``, or ``all`` of both."""
    languages: tuple[str, ...] = ()
    """Names in these only; none: in any."""
    across_languages: bool = False
    """Whether a pair may be of two languages."""
    negatives: int = 19
    """How many look-alikes stand beside the right name."""
    jaro_winkler: float = 0.6
    """A look-alike is more alike to the right name than this, in letters."""
    limit: int = 0
    """How many pairs, drawn at random; 0: all."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.pairs not in PAIRS:
            raise ConfigError(f"pairs: expected one of {', '.join(PAIRS)}, found {self.pairs!r}")
        if self.pairs == "relations" and not self.same_as:
            raise ConfigError("pairs: 'relations' needs a relation that joins the same (--same-as)")
        if self.negatives < 1:
            raise ConfigError(f"negatives: expected at least 1, found {self.negatives}")
        if not 0 <= self.jaro_winkler < 1:
            raise ConfigError(
                f"jaro_winkler: expected 0 or more and less than 1, found {self.jaro_winkler}"
            )
        for key in ("limit", "seed"):
            if getattr(self, key) < 0:
                raise ConfigError(f"{key}: expected 0 or more, found {getattr(self, key)}")
