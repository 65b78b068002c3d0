"""Segment the names of a store: vocabulary, cut points, short and long, then every long name."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from biograft.corpus.segmentation.config import SegmentationConfig
from biograft.corpus.segmentation.cut_points import CutPoint, find_cut_points, read_cut_points
from biograft.corpus.segmentation.folder import StoreNames, write_folder
from biograft.corpus.segmentation.heads import HeadSegmenter
from biograft.corpus.segmentation.phrases import MinedPhrases, mine_phrases, read_corpus
from biograft.corpus.segmentation.segmenter import ChineseSegmenter
from biograft.corpus.segmentation.units import CHINESE, Unit, join, runs
from biograft.corpus.segmentation.vocabulary import Vocabulary, fit_vocabulary
from biograft.corpus.segmentation.words import open_words
from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.progress import Progress
from biograft.runs import hash_file, new_folder


def build_segmentation(
    base: KnowledgeBase,
    texts: Sequence[Path],
    out: Path,
    config: SegmentationConfig | None = None,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Segment all names of a store in one language, and keep all that it rests on in a folder.

    Phrases are mined from ``texts`` (a document a line) and from the names themselves. Gives the
    manifest of the folder.
    """
    config, progress = config or SegmentationConfig(), progress or Progress(enabled=False)
    names = StoreNames.of(base, config.language)
    reviewed = read_cut_points(config.cut_points) if config.cut_points else None
    with new_folder(out, overwrite=overwrite) as folder:
        progress.start("phrases")
        mined = mine_phrases(
            (text for source in (read_corpus(texts), names.texts) for text in source),
            config.phrases,
            language=config.language,
            advance=progress.advance,
        )
        progress.start("vocabulary")
        grouped = [run for name in names.texts for run in runs(name, config.language)]
        counts = _count_words(mined, names.texts, config.language)
        vocabulary = fit_vocabulary(counts, grouped, config.language)
        progress.start("segments")
        segmenter, points = _make_segmenter(vocabulary, grouped, names, config, reviewed)
        segmenter.learn(names.texts)
        segmented = []
        for name in names.texts:
            segmented.append(segmenter.segment(name))
            progress.advance(1, len(segmented) / len(names.texts))
        progress.finish()
        content = {
            **_tell_origin(config, texts),
            "n_units": mined.n_units,
            "n_runs_forgotten": mined.pruned,
            "n_phrases": len(mined.phrases),
            "seconds": {stage: round(took, 3) for stage, took in progress.seconds.items()},
        }
        return write_folder(folder, base, names, (mined, segmenter, points), segmented, content)


def _count_words(mined: MinedPhrases, names: Sequence[str], language: str) -> dict[str, float]:
    """Count the words of the entity vocabulary: phrases, and names that no sign parts."""
    counts: dict[str, float] = {phrase.text: phrase.count for phrase in mined.phrases}
    for name in names:
        grouped = runs(name, language)
        if len(grouped) == 1 and language == CHINESE:
            forms = [unit.form for unit in grouped[0]]
            counts[join(forms, language)] = max(mined.count(forms), 1)
    return counts


def _make_segmenter(
    vocabulary: Vocabulary,
    grouped: list[list[Unit]],
    names: StoreNames,
    config: SegmentationConfig,
    reviewed: list[CutPoint] | None,
) -> tuple[ChineseSegmenter | HeadSegmenter, list[CutPoint]]:
    if config.language != CHINESE:
        if reviewed is not None:
            raise ConfigError("cut_points: are for Chinese; leave them out")
        return HeadSegmenter(vocabulary, config=config), []
    points = reviewed
    if points is None:
        points = find_cut_points(
            grouped, vocabulary, n=config.n_cut_points, min_share=config.min_cut_share
        )
    phrases = [word for word in vocabulary.counts if word not in names.forms]
    words = open_words(config.words, vocabulary, phrases)
    return ChineseSegmenter(vocabulary, words, points, config), points


def _tell_origin(config: SegmentationConfig, texts: Sequence[Path]) -> dict[str, Any]:
    return {
        "config": _plain(config),
        "cut_points_sha256": hash_file(config.cut_points) if config.cut_points else None,
        "texts": [{"name": text.name, "sha256": hash_file(text)} for text in texts],
    }


def _plain(config: SegmentationConfig) -> dict[str, Any]:
    """Write a configuration as plain values; of a file its name alone."""
    name = config.cut_points.name if config.cut_points else None
    return {**dataclasses.asdict(config), "cut_points": name}
