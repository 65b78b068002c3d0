"""Models that read a text and write a name (BART, T5 and their like), with their tokenizers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.nn.seq2seq.config import NewSeq2Seq as NewSeq2Seq
    from biograft.nn.seq2seq.creating import create_namer as create_namer
    from biograft.nn.seq2seq.namer import Namer as Namer


__getattr__, __dir__, __all__ = lazify(__name__)
