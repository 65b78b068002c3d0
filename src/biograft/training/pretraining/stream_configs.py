"""The configurations of training streams; the defaults are the published settings."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from biograft.config import AtLeast, Config, Range, Ratio, check_fields
from biograft.errors import ConfigError
from biograft.registry import Registry
from biograft.training.pretraining.substitution import SubstitutionConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class SynonymPairsConfig(Config):
    """Settings of the pairs of names to learn from.

    At most ``max_pairs`` pairs of one concept are sampled, by ``seed`` (0: all pairs).
    ``languages`` keeps names in these languages only (empty: all); ``cross_language`` keeps pairs
    of different languages only. ``trade_names`` adds to a concept the names of its trade names and
    of the concepts that it is a trade name of. ``extra_pairs`` is a file of ``id||name||name``
    lines to add. ``bucket_batches``, where above 0, groups names of similar length within so many
    batches, which saves padding.
    """

    max_pairs: Annotated[int, AtLeast(0)] = 50
    languages: tuple[str, ...] = ()
    lowercase: bool = True
    cross_language: bool = False
    trade_names: bool = False
    extra_pairs: Path | None = None
    bucket_batches: Annotated[int, AtLeast(0)] = 0
    seed: Annotated[int, AtLeast(0)] = 33


MIN_LENGTH, MAX_LENGTH = 8, 32_767


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatedTextConfig(Config):
    """Settings of reading annotated text as sequences of tokens.

    ``shards`` is a folder of `biograft corpus annotate`; its tokens are stored in ``cache`` (by
    default beside it). With ``pack`` a sequence of at most ``max_length`` tokens holds several
    documents if they fit, otherwise one or a part of one. ``two_segments`` splits every sequence
    in two at the end of a sentence, for sentence_order and next_sentence; with
    ``random_next_probability`` the second segment is replaced by one of another document.
    ``bucket_batches``, where above 0, groups sequences of similar length within so many batches,
    which saves padding.

    A sequence has at most ``max_mentions`` mentions, those with the best scores (0: no limit), and
    none with a score below ``min_score``. Concepts with fewer than ``min_count`` mentions are not
    in the entity table.

    ``segmentation`` is a folder of `biograft corpus segment` with the segments of long entities.
    With a table ``substitution`` copies of the documents are read, too, in which entities are
    replaced by synonyms or by other entities. They are not packed together, so that a held-out
    document is held out in all its copies.

    ``workers`` processes pack the shards (0: one per core); the sequences do not depend on it.
    """

    shards: Path
    cache: Path | None = None
    max_length: Annotated[int, Range(min=MIN_LENGTH, max=MAX_LENGTH)] = 512
    pack: bool = True
    two_segments: bool = False
    random_next_probability: Ratio = 0.0
    bucket_batches: Annotated[int, AtLeast(0)] = 0
    max_mentions: Annotated[int, AtLeast(0)] = 50
    min_score: Annotated[float, AtLeast(0)] = 0.0
    min_count: Annotated[int, AtLeast(0)] = 1
    segmentation: Path | None = None
    substitution: SubstitutionConfig | None = None
    workers: Annotated[int, AtLeast(0)] = 0

    def __post_init__(self) -> None:
        check_fields(self)
        if self.two_segments and self.pack:
            raise ConfigError(
                "two_segments: both segments are of one document, but pack puts several in a "
                "sequence; set pack = false"
            )
        if self.substitution is not None and self.pack:
            raise ConfigError(
                "substitution: a document and its copies are held out together, but pack puts "
                "several documents in a sequence; set pack = false"
            )
        if self.random_next_probability and not self.two_segments:
            raise ConfigError(
                "random_next_probability: there is no second segment to replace; set two_segments"
            )

    def packing_settings(self) -> dict[str, Any]:
        """Return the settings that determine the packed sequences, as plain values."""
        settings = asdict(self)
        left_out = {"shards", "cache", "workers", "segmentation"}
        left_out |= {"random_next_probability", "bucket_batches"}
        if self.substitution is None:
            left_out.add("substitution")
        return {key: settings[key] for key in settings if key not in left_out}


@dataclass(frozen=True, slots=True, kw_only=True)
class NameTemplatesConfig(Config):
    """Settings of sentences made from a knowledge base.

    The sentence of a concept has at most ``max_definitions`` definitions, cut to
    ``definition_words`` words; without a definition, at most ``max_synonyms`` names. ``lower``
    lowercases all text; ``prompt`` gives the decoder ``mention is``. ``languages`` keeps names and
    definitions in these languages only (empty: all). ``bucket_batches``, where above 0, groups
    examples of similar length within so many batches, which saves padding.
    """

    lower: bool = True
    languages: tuple[str, ...] = ()
    prompt: bool = True
    max_synonyms: Annotated[int, AtLeast(1)] = 3
    max_definitions: Annotated[int, AtLeast(1)] = 2
    definition_words: Annotated[int, AtLeast(1)] = 384
    bucket_batches: Annotated[int, AtLeast(0)] = 0
    seed: Annotated[int, AtLeast(0)] = 33


STREAMS: Registry[Any] = Registry(
    "stream",
    {
        "synonym_pairs": (
            "biograft.training.pretraining.stream_configs:SynonymPairsConfig",
            "pairs of names of one concept of a knowledge base",
        ),
        "annotated_text": (
            "biograft.training.pretraining.stream_configs:AnnotatedTextConfig",
            "running text with linked mentions, as sequences of tokens",
        ),
        "name_templates": (
            "biograft.training.pretraining.stream_configs:NameTemplatesConfig",
            "sentences about the concepts of a knowledge base, and the names to generate",
        ),
    },
)
"""The configurations of all streams."""
