"""Corpus annotation: dictionary matching and entity linking of text into Parquet shards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.annotation.config import AnnotationConfig as AnnotationConfig
    from biograft.annotation.pipeline import Annotator as Annotator, select_best as select_best
    from biograft.annotation.runner import (
        ENGINES as ENGINES,
        ExecutionConfig as ExecutionConfig,
        annotate_corpus as annotate_corpus,
        read_frequencies as read_frequencies,
    )
    from biograft.annotation.work import (
        AnnotationReport as AnnotationReport,
        find_files as find_files,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
