"""Neural models: text encoders, sequence-to-sequence models, knowledge layers, precision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.nn.encoder import POOLINGS as POOLINGS, TextEncoder as TextEncoder
    from biograft.nn.precision import PRECISIONS as PRECISIONS
    from biograft.nn.seq2seq import Seq2SeqModel as Seq2SeqModel
    from biograft.nn.settings import EncoderSettings as EncoderSettings


__getattr__, __dir__, __all__ = lazify(__name__)
