"""The torch side: encoders of text, models that write names; in which precision they run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.nn.encoder import TextEncoder
    from biograft.nn.pooling import POOLINGS
    from biograft.nn.precision import PRECISIONS
    from biograft.nn.seq2seq.namer import Namer
    from biograft.nn.settings import EncoderSettings

__all__ = ["POOLINGS", "PRECISIONS", "EncoderSettings", "Namer", "TextEncoder"]

_HOMES = {
    "EncoderSettings": "biograft.nn.settings",
    "Namer": "biograft.nn.seq2seq.namer",
    "POOLINGS": "biograft.nn.pooling",
    "PRECISIONS": "biograft.nn.precision",
    "TextEncoder": "biograft.nn.encoder",
}

__getattr__ = load_on_use(__name__, _HOMES)
