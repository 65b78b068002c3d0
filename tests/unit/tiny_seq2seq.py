"""Encoder-decoders small enough for a test, with weights large enough for clear scores."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from biograft.models import NewSeq2Seq, Seq2SeqModel

SMALL = {"width": 16, "layers": 1, "heads": 2, "feed_forward": 32, "n_tokens": 400}


def tiny_seq2seq(texts: Iterable[str], *, seed: int = 0, max_length: int = 64) -> Seq2SeqModel:
    """Make a random BART with a tokenizer learnt from some texts."""
    model: Seq2SeqModel = NewSeq2Seq(max_length=max_length, dropout=0.0, **SMALL).create(
        texts, seed
    )
    with torch.no_grad():
        for weight in model.model.parameters():
            if weight.ndim == 2:
                weight.mul_(12)
    model.model.eval()
    return model
