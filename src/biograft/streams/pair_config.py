"""What may be chosen of synonym pairs; the defaults are the published settings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from biograft.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class SynonymPairsConfig:
    """Which pairs of names to learn from.

    ``max_pairs`` caps the pairs of one concept (0: no cap); what is over is sampled by ``seed``.
    ``languages`` keeps names in these languages only (none given: all); ``cross_language`` keeps
    pairs of different languages only. ``trade_names`` gives a concept the names of its trade
    names and of what it is a trade name of. ``extra_pairs`` is a file of ``id||name||name`` lines
    to add. ``bucket_batches``, where above 0, shuffles within so many batches by length, so that
    less is padded; batches then hold names of like length.
    """

    max_pairs: int = 50
    languages: tuple[str, ...] = ()
    lowercase: bool = True
    cross_language: bool = False
    trade_names: bool = False
    extra_pairs: Path | None = None
    bucket_batches: int = 0
    seed: int = 33

    def __post_init__(self) -> None:
        for name in ("max_pairs", "bucket_batches", "seed"):
            if getattr(self, name) < 0:
                raise ConfigError(
                    f"{name}: expected a number of at least 0, found {getattr(self, name)}"
                )
