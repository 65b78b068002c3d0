"""Annotate text at scale: a store and text in, Parquet shards of linked spans out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.annotation.config import AnnotationConfig
    from biograft.annotation.pipeline import Annotator
    from biograft.annotation.report import AnnotationReport
    from biograft.annotation.running import annotate_corpus

__all__ = ["AnnotationConfig", "AnnotationReport", "Annotator", "annotate_corpus"]

_HOMES = {
    "AnnotationConfig": "biograft.annotation.config",
    "AnnotationReport": "biograft.annotation.report",
    "Annotator": "biograft.annotation.pipeline",
    "annotate_corpus": "biograft.annotation.running",
}

__getattr__ = load_on_use(__name__, _HOMES)
