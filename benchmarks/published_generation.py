"""Constrained generation as published: nested dictionaries, a callback, no cache.

The baseline of trie.py, written from its description: the prompt is forced token by token, the
whole prefix is read again at every step, and the allowed tokens are looked up from the root, one
hypothesis at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

Trie = dict[int, "Trie"]
Hypothesis = tuple[float, list[int]]


def nest(names: Iterable[Sequence[int]]) -> Trie:
    """Put names, each with its end, into nested dictionaries."""
    trie: Trie = {}
    for name in names:
        node = trie
        for token in name:
            node = node.setdefault(int(token), {})
    return trie


def allowed(trie: Trie, prefix: Iterable[int]) -> list[int]:
    """Walk from the root and return the tokens that may follow."""
    node = trie
    for token in prefix:
        if token not in node:
            return []
        node = node[token]
    return list(node)


@torch.inference_mode()
def generate_name(
    model: Any, source: Tensor, begun: Sequence[int], trie: Trie, *, end: int, beams: int
) -> list[Hypothesis]:
    """Return the names of one mention, best first: mean log-probability, tokens with the end.

    ``begun`` is the input of the decoder: its first token and the prompt.
    """
    states = model.get_encoder()(input_ids=source)
    live: list[Hypothesis] = [(0.0, [])]
    finished: list[Hypothesis] = []
    while live and len(finished) < beams:
        given = torch.tensor([[*begun, *tokens] for _, tokens in live])
        logits = model(
            decoder_input_ids=given,
            encoder_outputs=(states.last_hidden_state.expand(len(live), -1, -1),),
            use_cache=False,
        ).logits[:, -1]
        scores = logits.log_softmax(-1)
        mask = torch.full_like(scores, -torch.inf)
        for row, (_, tokens) in enumerate(live):
            mask[row, allowed(trie, tokens)] = 0
        totals = scores + mask + torch.tensor([total for total, _ in live])[:, None]
        best = totals.flatten().topk(min(beams, totals.numel()))
        continued: list[Hypothesis] = []
        room = beams - len(finished)
        for rank, (total, position) in enumerate(
            zip(best.values.tolist(), best.indices.tolist(), strict=True)
        ):
            if total == -torch.inf:
                continue
            row, token = divmod(position, scores.shape[1])
            tokens = [*live[row][1], token]
            if token != end:
                continued.append((total, tokens))
            elif rank < room:
                finished.append((total / len(tokens), tokens))
        live = continued
    return sorted(finished, reverse=True)[:beams]
