"""Names written token by token, none but those of a trie."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.nn.generation.config import BeamConfig
    from biograft.nn.generation.flat_trie import FlatTrie
    from biograft.nn.generation.scoring import score_names
    from biograft.nn.generation.search import Asked, Found, generate_names

__all__ = ["Asked", "BeamConfig", "FlatTrie", "Found", "generate_names", "score_names"]

_HOMES = {
    "Asked": "biograft.nn.generation.search",
    "BeamConfig": "biograft.nn.generation.config",
    "FlatTrie": "biograft.nn.generation.flat_trie",
    "Found": "biograft.nn.generation.search",
    "generate_names": "biograft.nn.generation.search",
    "score_names": "biograft.nn.generation.scoring",
}

__getattr__ = load_on_use(__name__, _HOMES)
