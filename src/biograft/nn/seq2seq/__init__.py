"""Models that read a text and write a name (BART, T5 and their like), with their tokenizers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.nn.seq2seq.config import NewSeq2Seq
    from biograft.nn.seq2seq.creating import create_namer
    from biograft.nn.seq2seq.namer import Namer

__all__ = ["Namer", "NewSeq2Seq", "create_namer"]

_HOMES = {
    "Namer": "biograft.nn.seq2seq.namer",
    "NewSeq2Seq": "biograft.nn.seq2seq.config",
    "create_namer": "biograft.nn.seq2seq.creating",
}

__getattr__ = load_on_use(__name__, _HOMES)
