"""What names of one's own choice score: all their tokens are given, none is searched for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from transformers.modeling_outputs import BaseModelOutput

from biograft.errors import ConfigError
from biograft.nn.batching import pad
from biograft.nn.generation.search import Asked

Scores = npt.NDArray[np.float32]
_ROWS = 256
"""Names that are scored at once."""


@torch.inference_mode()
def score_names(
    model: Any,
    asked: Asked,
    names: Sequence[Sequence[Sequence[int]]],
    *,
    start: int,
    length_penalty: float = 1.0,
) -> list[Scores]:
    """Score names, given as tokens with their end, for each mention: the mean log-probability.

    The mean is over the tokens of the name and its end, over the whole vocabulary, as
    ``generate_names`` scores what it finds.
    """
    if not len(asked.sources) == len(asked.prompts) == len(names):
        raise ConfigError(
            f"mentions: expected as many sources, prompts and lists of names, found "
            f"{len(asked.sources)}, {len(asked.prompts)} and {len(names)}"
        )
    if any(not name for own in names for name in own):
        raise ConfigError("names: expected at least one token each, found none")
    device = next(model.parameters()).device
    mask = asked.mask.to(device)
    states = model.get_encoder()(input_ids=asked.sources.to(device), attention_mask=mask)
    wanted = [
        (mention, [start, *asked.prompts[mention], *name], len(name))
        for mention, own in enumerate(names)
        for name in own
    ]
    found: list[float] = []
    for first in range(0, len(wanted), _ROWS):
        rows, tokens, lengths = zip(*wanted[first : first + _ROWS], strict=True)
        chosen = torch.tensor(rows, device=device)
        given = pad([line[:-1] for line in tokens], 0)
        logits = model(
            decoder_input_ids=given["input_ids"].to(device),
            encoder_outputs=BaseModelOutput(states.last_hidden_state.index_select(0, chosen)),
            attention_mask=mask.index_select(0, chosen),
            use_cache=False,
        ).logits
        found += _sums(logits, tokens, lengths)
    each = iter(found)
    return [
        np.array([next(each) / len(name) ** length_penalty for name in own], np.float32)
        for own in names
    ]


def _sums(logits: Tensor, tokens: Sequence[Sequence[int]], lengths: Sequence[int]) -> list[float]:
    """Add up the log-probabilities of the last tokens of each row."""
    sums = []
    for row, (line, length) in enumerate(zip(tokens, lengths, strict=True)):
        stop = len(line) - 1
        scores = logits[row, stop - length : stop].double().log_softmax(-1)
        own = torch.tensor(line[-length:], device=logits.device)
        sums.append(float(scores.gather(1, own[:, None]).sum()))
    return sums
