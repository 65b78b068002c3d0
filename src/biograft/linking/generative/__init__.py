"""Generative entity linking (GenBioEL): a sequence-to-sequence model generates concept names.

>>> from biograft.linking.generative import NameTrie, Seq2SeqLinker
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.linking.generative.config import (
        GenerativeConfig as GenerativeConfig,
        GenerativeTraining as GenerativeTraining,
        NamesConfig as NamesConfig,
    )
    from biograft.linking.generative.examples import (
        GenerationExamples as GenerationExamples,
        collect_mentions as collect_mentions,
    )
    from biograft.linking.generative.folder import Mixing as Mixing
    from biograft.linking.generative.names import (
        Forest as Forest,
        NameTrie as NameTrie,
        Selection as Selection,
        select_names as select_names,
    )
    from biograft.linking.generative.ranker import (
        Seq2SeqLinker as Seq2SeqLinker,
        load_seq2seq_linker as load_seq2seq_linker,
    )
    from biograft.linking.generative.training import (
        Mentions as Mentions,
        train_generative as train_generative,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
