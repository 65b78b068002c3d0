"""Beam search over several masked tokens: fill the blank of a cloze query.

At each step the model reads the tokens filled in so far, and the most probable fillings of one more
position are kept. By default the probabilities also decide the order of positions. Texts in a batch
have equal length, so there is no padding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch

from biograft.errors import InputError
from biograft.models.masked_lm import MaskedLanguageModel
from biograft.progress import Progress
from biograft_lab.probing.cloze_queries import BLANK
from biograft_lab.probing.config import DecodingConfig

_MAX_SCORES = {"cpu": 50_000_000, "cuda": 1_000_000_000}
"""Maximum number of token scores held in memory."""


class Filling(NamedTuple):
    """A filling of a blank: its text and the summed log probability of its tokens."""

    text: str
    score: float


class Filled(NamedTuple):
    """The fillings of one query with one number of masks, best first."""

    query: int
    n_masks: int
    fillings: tuple[Filling, ...]


class _MaskedBatch(NamedTuple):
    """Queries of equal length and number of masks."""

    queries: list[int]
    token_ids: torch.Tensor  # (queries, tokens)
    first: torch.Tensor  # (queries,): position of the first mask
    n_masks: int


class _Beams(NamedTuple):
    """Beams of each query: token ids, scores and positions that are still masked."""

    token_ids: torch.Tensor  # (queries, beams, tokens)
    scores: torch.Tensor  # (queries, beams), 64 bits
    positions: torch.Tensor  # (queries, beams, open positions), ascending


def decode(
    model: MaskedLanguageModel,
    prompts: Sequence[str],
    config: DecodingConfig,
    progress: Progress | None = None,
) -> Iterator[Filled]:
    """Fill the blanks of prompts, in any order of prompts and lengths.

    Prompts that are too long for the model with so many masks are skipped.
    """
    tokens = [_split(model, prompt) for prompt in prompts]
    batches = list(_batches(model, tokens, config))
    costs = [
        len(b.queries) * b.token_ids.shape[1] * (1 + (b.n_masks - 1) * config.beam) for b in batches
    ]
    n_done, n_all = 0, max(1, sum(costs))
    for batch, cost in zip(batches, costs, strict=True):
        with torch.inference_mode():
            beams = _fill(model, batch, config)
        yield from _write_out(model, batch, beams)
        if progress:
            n_done += cost
            progress.advance(len(batch.queries), n_done / n_all)


def _split(model: MaskedLanguageModel, prompt: str) -> tuple[list[int], list[int]]:
    """Return the tokens of a prompt before and after its blank."""
    ids = model.token_ids(prompt.replace(BLANK, model.tokenizer.mask_token))
    if ids.count(model.mask) != 1:
        raise InputError(f"expected one {BLANK} in each prompt", path=model.name, text=prompt)
    position = ids.index(model.mask)
    return ids[:position], ids[position + 1 :]


def _batches(
    model: MaskedLanguageModel,
    tokens: Sequence[tuple[list[int], list[int]]],
    config: DecodingConfig,
) -> Iterator[_MaskedBatch]:
    """Group queries by length and number of masks, longest first."""
    groups: dict[tuple[int, int], list[int]] = {}
    for query, (before, after) in enumerate(tokens):
        for n in config.lengths:
            if (length := len(before) + n + len(after)) <= model.max_length:
                groups.setdefault((length, n), []).append(query)
    room = _MAX_SCORES.get(model.device.type, _MAX_SCORES["cpu"]) // model.n_tokens
    for (_, n), queries in sorted(groups.items(), reverse=True):
        size = config.batch or max(1, room // (n * config.beam))
        for start in range(0, len(queries), size):
            batch = queries[start : start + size]
            texts = [[*tokens[q][0], *[model.mask] * n, *tokens[q][1]] for q in batch]
            first = [len(tokens[q][0]) for q in batch]
            device = model.device
            yield _MaskedBatch(
                batch, torch.tensor(texts, device=device), torch.tensor(first, device=device), n
            )


def _fill(model: MaskedLanguageModel, batch: _MaskedBatch, config: DecodingConfig) -> _Beams:
    """Fill one position at each step, with a forward pass for every beam."""
    slots = torch.arange(batch.n_masks, device=batch.first.device)
    beams = _Beams(
        batch.token_ids[:, None],
        torch.zeros(len(batch.queries), 1, dtype=torch.float64, device=batch.first.device),
        batch.first[:, None, None] + slots,
    )
    for _ in range(batch.n_masks):
        n_positions = 1 if config.order == "left-to-right" else beams.positions.shape[2]
        values, tokens = _best_tokens(
            model, beams.token_ids, beams.positions[:, :, :n_positions], config.beam
        )
        beams = _extend(beams, values, tokens, config.beam)
    return beams


def _best_tokens(
    model: MaskedLanguageModel, token_ids: torch.Tensor, positions: torch.Tensor, n_best: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return log probabilities and ids of the best tokens: (queries, beams, positions, best).

    Beams of a query with the same filling, reached in another order, are read once.
    """
    shape = positions.shape
    texts_and_positions = torch.cat([token_ids, positions], 2).flatten(0, 1)
    rows, origin = torch.unique(texts_and_positions, dim=0, return_inverse=True)
    width = token_ids.shape[2]
    scores = model.scores(rows[:, :width], rows[:, width:]).float()  # (rows, positions, vocabulary)
    values, tokens = scores.topk(min(n_best, scores.shape[2]))
    values = values.double() - scores.logsumexp(2, keepdim=True).double()
    return values[origin].view(*shape, -1), tokens[origin].view(*shape, -1)


def _extend(beams: _Beams, values: torch.Tensor, tokens: torch.Tensor, n_best: int) -> _Beams:
    """Fill one more position: the best of all beams, positions and tokens; ties by order."""
    n_queries, _, n_positions, n_tokens = values.shape
    candidates = (beams.scores[:, :, None, None] + values).flatten(1)
    order = candidates.sort(dim=1, descending=True, stable=True).indices[:, :n_best]
    beam = order // (n_positions * n_tokens)
    slot = order // n_tokens % n_positions
    queries = torch.arange(n_queries, device=order.device)[:, None]
    open_positions = beams.positions[queries, beam]  # (queries, beams, open positions)
    position = open_positions.gather(2, slot[:, :, None])
    token = tokens.flatten(1).gather(1, order)[:, :, None]
    still_open = torch.arange(open_positions.shape[2], device=order.device) != slot[:, :, None]
    return _Beams(
        beams.token_ids[queries, beam].scatter(2, position, token),
        candidates.gather(1, order),
        open_positions[still_open].view(n_queries, order.shape[1], -1),
    )


def _write_out(model: MaskedLanguageModel, batch: _MaskedBatch, beams: _Beams) -> Iterator[Filled]:
    n_beams = beams.scores.shape[1]
    slots = torch.arange(batch.n_masks, device=batch.first.device)
    positions = (batch.first[:, None, None] + slots).expand(-1, n_beams, -1)
    texts = model.texts(beams.token_ids.gather(2, positions).flatten(0, 1).tolist())
    for row, (query, scores) in enumerate(zip(batch.queries, beams.scores.tolist(), strict=True)):
        row_texts = texts[row * n_beams : (row + 1) * n_beams]
        yield Filled(query, batch.n_masks, tuple(map(Filling, row_texts, scores)))
