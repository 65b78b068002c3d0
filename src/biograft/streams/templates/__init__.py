"""Sentences about the concepts of a knowledge base, to learn their names from (GenBioEL)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.streams.templates.config import NameTemplatesConfig as NameTemplatesConfig
    from biograft.streams.templates.templates import (
        NameTemplates as NameTemplates,
        TemplateCounts as TemplateCounts,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
