"""Corpus annotation: dictionary matching and entity linking of text into Parquet shards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft.linking.annotation.chunks import (
        AnnotationReport as AnnotationReport,
        find_files as find_files,
    )
    from biograft.linking.annotation.config import AnnotationConfig as AnnotationConfig
    from biograft.linking.annotation.pipeline import (
        Annotator as Annotator,
        select_best as select_best,
    )
    from biograft.linking.annotation.runner import (
        ExecutionConfig as ExecutionConfig,
        annotate as annotate,
        read_frequencies as read_frequencies,
    )
    from biograft.linking.batches import ENGINES as ENGINES


__getattr__, __dir__, __all__ = lazify(__name__)
