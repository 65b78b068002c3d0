"""Linking by generation: a model writes the name of a mention's concept, token by token (GenBioEL).

>>> from biograft.linking.generative import GenerativeRanker, NameTrie
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify as lazify

if TYPE_CHECKING:
    from biograft.linking.generative.config import (
        GenerativeConfig as GenerativeConfig,
        GenerativeTraining as GenerativeTraining,
        NamesConfig as NamesConfig,
    )
    from biograft.linking.generative.examples import (
        MentionNaming as MentionNaming,
        gather_mentions as gather_mentions,
    )
    from biograft.linking.generative.folder import Mixing as Mixing
    from biograft.linking.generative.names import (
        Forest as Forest,
        NameTrie as NameTrie,
        Selection as Selection,
        select_names as select_names,
    )
    from biograft.linking.generative.ranker import (
        GenerativeRanker as GenerativeRanker,
        open_generative_ranker as open_generative_ranker,
    )
    from biograft.linking.generative.training import (
        Mentions as Mentions,
        train_generative as train_generative,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
