"""Corpus annotation: dictionary matching and entity linking of text into Parquet shards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.annotation.config import AnnotationConfig as AnnotationConfig
    from biograft.annotation.pipeline import Annotator as Annotator
    from biograft.annotation.runner import annotate_corpus as annotate_corpus
    from biograft.annotation.work import AnnotationReport as AnnotationReport


__getattr__, __dir__, __all__ = lazify(__name__)
