"""Names written token by token, none but those of a trie."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.nn.generation.config import BeamConfig as BeamConfig
    from biograft.nn.generation.flat_trie import FlatTrie as FlatTrie
    from biograft.nn.generation.scoring import score_names as score_names
    from biograft.nn.generation.search import (
        Asked as Asked,
        Found as Found,
        generate_names as generate_names,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
