"""Names written token by token, none but those of a trie."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify as lazify

if TYPE_CHECKING:
    from biograft.nn.generation.beam_search import (
        Asked as Asked,
        Found as Found,
        generate_names as generate_names,
        score_names as score_names,
    )
    from biograft.nn.generation.config import BeamConfig as BeamConfig
    from biograft.nn.generation.trie import FlatTrie as FlatTrie


__getattr__, __dir__, __all__ = lazify(__name__)
