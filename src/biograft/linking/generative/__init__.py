"""Linking by generation: a model writes the name of a mention's concept, token by token (GenBioEL).

>>> from biograft.linking.generative import GenerativeRanker, NameTrie
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.linking.generative.config import (
        GenerativeConfig,
        GenerativeTraining,
        NamesConfig,
    )
    from biograft.linking.generative.examples import MentionNaming, gather_mentions
    from biograft.linking.generative.mixing import Mixing
    from biograft.linking.generative.names import Forest, NameTrie
    from biograft.linking.generative.ranker import GenerativeRanker, open_generative_ranker
    from biograft.linking.generative.selection import Selection, select_names
    from biograft.linking.generative.training import (
        Mentions,
        train_generative,
    )

__all__ = [
    "Forest",
    "GenerativeConfig",
    "GenerativeRanker",
    "GenerativeTraining",
    "MentionNaming",
    "Mentions",
    "Mixing",
    "NameTrie",
    "NamesConfig",
    "Selection",
    "gather_mentions",
    "open_generative_ranker",
    "select_names",
    "train_generative",
]

_HOMES = {
    "Forest": "biograft.linking.generative.names",
    "GenerativeConfig": "biograft.linking.generative.config",
    "GenerativeRanker": "biograft.linking.generative.ranker",
    "GenerativeTraining": "biograft.linking.generative.config",
    "MentionNaming": "biograft.linking.generative.examples",
    "Mentions": "biograft.linking.generative.training",
    "Mixing": "biograft.linking.generative.mixing",
    "NameTrie": "biograft.linking.generative.names",
    "NamesConfig": "biograft.linking.generative.config",
    "Selection": "biograft.linking.generative.selection",
    "gather_mentions": "biograft.linking.generative.examples",
    "open_generative_ranker": "biograft.linking.generative.ranker",
    "select_names": "biograft.linking.generative.selection",
    "train_generative": "biograft.linking.generative.training",
}

__getattr__ = load_on_use(__name__, _HOMES)
