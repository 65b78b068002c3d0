"""Settings of entity segmentation, and of the phrases that are mined for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from biograft.config import AtLeast, Choice, Config, Doc, Option, Ratio
from biograft.kb.names import language_code

CHINESE = "zh"
RJIEBA, UNIGRAM = "rjieba", "unigram"
WORD_SEGMENTERS = (RJIEBA, UNIGRAM)


@dataclass(frozen=True, kw_only=True)
class PhraseConfig(Config):
    """The thresholds of phrases."""

    min_count: Annotated[int, AtLeast(2), Option("Minimum count of a phrase.", metavar="N")] = 8
    max_length: Annotated[
        int, AtLeast(2), Doc("Maximum length in units (characters in Chinese, else words).")
    ] = 6
    min_cohesion: Annotated[float, AtLeast(0), Doc("Minimum pointwise mutual information.")] = 3.0
    min_entropy: Annotated[
        float, AtLeast(0), Doc("Minimum entropy of the neighbours on either side.")
    ] = 1.5
    min_quality: Annotated[
        Ratio,
        Option("Minimum quality of a phrase, 0 to 1, learned from the names of KB.", metavar="Q"),
    ] = 0.0
    max_entries: Annotated[
        int,
        AtLeast(1),
        Option(
            "Counts in memory, about 100 bytes each; beyond that the rarest are dropped.",
            metavar="N",
        ),
    ] = 1 << 25
    max_units: Annotated[
        int,
        AtLeast(1),
        Option(
            "Different words in memory, about 200 bytes each; beyond that the rarest are dropped.",
            metavar="N",
        ),
    ] = 1 << 22


@dataclass(frozen=True, kw_only=True)
class SegmentationConfig(Config):
    """Settings of long entities and their segmentation."""

    language: Annotated[
        str,
        Option(
            "Names in this language: zh, or one that is written with spaces (heads are found by "
            "English rules).",
            metavar="LANG",
            parse=language_code,
        ),
    ] = CHINESE
    long_from: Annotated[
        int,
        AtLeast(2),
        Doc("Minimum characters of a long Chinese entity; in other languages it is two words."),
    ] = 4
    word_segmenter: Annotated[
        str,
        Choice(*WORD_SEGMENTERS),
        Option("Chinese word segmenter: rjieba, or unigram over names and phrases."),
    ] = RJIEBA
    max_single: Annotated[
        Ratio,
        Option(
            "Ratio of single characters above which the segmentation by phrases is used.",
            metavar="RATIO",
        ),
    ] = 0.4
    n_cut_points: Annotated[int, AtLeast(0), Doc("Characters that become cut points.")] = 100
    min_cut_ratio: Annotated[
        Ratio,
        Doc("Minimum ratio of occurrences at which a cut-point character is a segment boundary."),
    ] = 0.6
    cut_points: Annotated[
        Path | None, Option("Reviewed cut points; default: count them again.", metavar="FILE")
    ] = None
    phrases: PhraseConfig = field(default_factory=PhraseConfig)
    """Settings of mining phrases."""
    min_heads: Annotated[
        int,
        AtLeast(1),
        Doc("In other languages, different words that must precede a head at least."),
    ] = 3
