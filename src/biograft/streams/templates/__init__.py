"""Sentences about the concepts of a knowledge base, to learn their names from (GenBioEL)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.streams.templates.config import NameTemplatesConfig
    from biograft.streams.templates.templates import NameTemplates, TemplateCounts

__all__ = ["NameTemplates", "NameTemplatesConfig", "TemplateCounts"]

_HOMES = {
    "NameTemplates": "biograft.streams.templates.templates",
    "NameTemplatesConfig": "biograft.streams.templates.config",
    "TemplateCounts": "biograft.streams.templates.templates",
}

__getattr__ = load_on_use(__name__, _HOMES)
