"""Objectives: what a model is trained for; each gives a loss and what there is to know of it."""

from __future__ import annotations

from typing import Any

from biograft.registry import Registry

__all__ = ["OBJECTIVES"]

OBJECTIVES: Registry[Any] = Registry(
    "objective",
    {
        "synonym_alignment": (
            "biograft.objectives.synonym_alignment.config:SynonymAlignmentConfig",
            "names of one concept near each other, names of others far (SapBERT)",
        ),
    },
)
"""The configuration of every objective; its ``build()`` gives the objective itself."""
