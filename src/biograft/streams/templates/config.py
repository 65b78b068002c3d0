"""What may be chosen of sentences about concepts; the defaults are the published settings."""

from __future__ import annotations

from dataclasses import dataclass

from biograft.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class NameTemplatesConfig:
    """Which sentences are made of a knowledge base.

    Of a concept with a definition at most ``max_definitions`` of them make up its sentence, cut to
    ``definition_words``; of one with several names at most ``max_synonyms``. ``lower`` writes all
    in small letters; ``prompt`` gives the decoder ``mention is``. ``languages`` keeps names and
    definitions in these languages only (none given: all). ``bucket_batches``, where above 0,
    sorts within so many batches by length, so that less is padded.
    """

    lower: bool = True
    languages: tuple[str, ...] = ()
    prompt: bool = True
    max_synonyms: int = 3
    max_definitions: int = 2
    definition_words: int = 384
    bucket_batches: int = 0
    seed: int = 33

    def __post_init__(self) -> None:
        for name in ("max_synonyms", "max_definitions", "definition_words"):
            if getattr(self, name) < 1:
                raise ConfigError(
                    f"{name}: expected a number of at least 1, found {getattr(self, name)}"
                )
        for name in ("bucket_batches", "seed"):
            if getattr(self, name) < 0:
                raise ConfigError(
                    f"{name}: expected a number of at least 0, found {getattr(self, name)}"
                )
