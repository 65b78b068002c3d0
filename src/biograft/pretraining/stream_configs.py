"""What may be chosen of synonym pairs; the defaults are the published settings."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from biograft.errors import ConfigError
from biograft.pretraining.substitution import ReplacementConfig
from biograft.registry import Registry


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


STREAMS: Registry[Any] = Registry(
    "stream",
    {
        "synonym_pairs": (
            "biograft.pretraining.stream_configs:SynonymPairsConfig",
            "pairs of names of one concept of a knowledge base",
        ),
        "annotated_text": (
            "biograft.pretraining.stream_configs:AnnotatedTextConfig",
            "running text with linked mentions, as sequences of tokens",
        ),
        "name_templates": (
            "biograft.pretraining.stream_configs:NameTemplatesConfig",
            "sentences about the concepts of a knowledge base, and the names to give",
        ),
    },
)
"""The configuration of every stream."""
