"""Generative entity linking (GenBioEL): a sequence-to-sequence model generates concept names.

>>> from biograft.linking.generative import NameTrie, Seq2SeqLinker
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft.linking.generative.config import (
        GenerativeConfig as GenerativeConfig,
        GenerativeTraining as GenerativeTraining,
        NamesConfig as NamesConfig,
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


__getattr__, __dir__, __all__ = lazify(__name__)
