"""Constrained decoding: generation of names token by token within a prefix tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft.models.generation.beam_search import (
        GeneratedNames as GeneratedNames,
        GenerationInputs as GenerationInputs,
        generate_names as generate_names,
    )
    from biograft.models.generation.config import BeamConfig as BeamConfig
    from biograft.text.trie import FlatTrie as FlatTrie


__getattr__, __dir__, __all__ = lazify(__name__)
