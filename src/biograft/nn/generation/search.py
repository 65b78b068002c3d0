"""Beam search for names: only what some name goes on with is ever scored.

Live hypotheses of all mentions stand in one row, as many as there are: a mention that is done
takes no more place. Each remembers its node in the trie. The log-probability of a token is over
the whole vocabulary, but only the tokens that may follow are looked at, so no mask of the size
of the vocabulary is filled.

A prompt is given, not scored: prompts of a batch are read as far as the shortest goes, and the
longer ones step by step beside the names that have begun, so that no padding ever comes between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from biograft.errors import ConfigError
from biograft.nn.generation.config import BeamConfig
from biograft.nn.generation.flat_trie import FlatTrie, Ints
from biograft.nn.generation.following import best_following
from biograft.nn.generation.hypotheses import Finished, Live, choose
from biograft.nn.generation.stepping import Stepper

Scores = npt.NDArray[np.float32]


class Asked(NamedTuple):
    """Mentions as a model reads them."""

    sources: Tensor
    """(mentions, length): tokens of the text, for the encoder."""
    mask: Tensor
    """1 where there is a token, 0 at padding."""
    prompts: Sequence[Sequence[int]]
    """Tokens that the decoder is given before each name, none or some."""


class Found(NamedTuple):
    """The names found for each mention, best first."""

    sequences: Ints  # (mentions, beams): numbers of the trie's sequences, -1 where there are fewer
    scores: Scores  # (mentions, beams): -inf where there are fewer


@torch.inference_mode()
def generate_names(
    model: Any,
    asked: Asked,
    trie: FlatTrie,
    *,
    start: int,
    roots: Ints | None = None,
    config: BeamConfig | None = None,
) -> Found:
    """Write the likeliest names of a trie for each mention.

    ``model`` is an encoder-decoder of transformers, in its inference mode; a prompt follows the
    token ``start``. A name begins at the root, or at the node of its mention in ``roots``.
    """
    config = config or BeamConfig()
    forced = [[start, *prompt] for prompt in asked.prompts]
    roots = np.full(len(forced), trie.root, np.int64) if roots is None else roots
    if not len(asked.sources) == len(asked.mask) == len(forced) == len(roots):
        raise ConfigError(
            f"mentions: expected as many sources, prompts and roots, found {len(asked.sources)}, "
            f"{len(forced)} and {len(roots)}"
        )
    if not forced:
        return Found(np.zeros((0, config.beams), np.int64), np.zeros((0, config.beams), np.float32))
    lengths = np.array([len(tokens) for tokens in forced])
    stepper = Stepper(model, asked.sources, asked.mask)
    n_read = int(lengths.min())
    logits = stepper.read(torch.tensor([tokens[:n_read] for tokens in forced]))
    live = Live.begin(roots)
    finished = Finished(len(forced), config)
    while True:
        named = np.flatnonzero(lengths[live.mentions] <= n_read)
        following = best_following(
            logits[torch.from_numpy(named).to(logits.device)] if len(named) < len(live) else logits,
            trie, live.nodes[named], config,
        )  # fmt: skip
        going_on = choose(live.take(named), following, trie, finished, config)
        waiting = np.flatnonzero(lengths[live.mentions] > n_read)
        parents = np.concatenate([waiting, named[going_on.parents]])
        tokens = [forced[mention][n_read] for mention in live.mentions[waiting]]
        live = Live.join(live.take(waiting), going_on.live)
        if not len(live):
            return Found(*finished.ranked())
        n_read += 1
        steps = np.concatenate([np.array(tokens, np.int64), going_on.tokens])
        logits = stepper.step(steps, parents, live.mentions)
