"""Fill runs of masked places: the answers a model gives to a query, several masks long.

At each step the model sees what is filled in so far, and the most probable fillings of one place
more are kept; which place comes next is decided by the probabilities too, unless told otherwise.
Texts in a batch are of one length, so that nothing is padded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from biograft.errors import ConfigError, InputError
from biograft.nn.masked_lm import MaskedLanguageModel
from biograft.probing.cloze_queries import BLANK
from biograft.progress import Progress

ORDERS = ("any", "left-to-right", "independent")
_MOST_SCORES = {"cpu": 50_000_000, "cuda": 1_000_000_000}
"""Scores of tokens held at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingConfig:
    """How blanks are filled; the defaults are those of KeBioLM's probe."""

    lengths: tuple[int, ...] = tuple(range(1, 11))
    """Numbers of masks that a blank is tried with."""
    beam: int = 5
    """How many fillings are kept at each step, and given for each length; 1: greedy."""
    order: str = "any"
    """``any``: the most confident place first; ``left-to-right``; ``independent``: all places
    from one look at the model, that of nothing filled in."""
    batch: int = 0
    """Queries at a time; 0: as many as memory allows."""

    def __post_init__(self) -> None:
        if not self.lengths or min(self.lengths) < 1 or len(set(self.lengths)) < len(self.lengths):
            raise ConfigError(
                f"lengths: expected different numbers from 1, found {list(self.lengths)}"
            )
        if self.beam < 1:
            raise ConfigError(f"beam: expected at least 1, found {self.beam}")
        if self.order not in ORDERS:
            raise ConfigError(f"order: expected one of {', '.join(ORDERS)}, found {self.order!r}")
        if self.batch < 0:
            raise ConfigError(f"batch: expected 0 or more, found {self.batch}")


class Filling(NamedTuple):
    """What a model puts into a blank: text and log probability, summed over its tokens."""

    text: str
    score: float


class Filled(NamedTuple):
    """The fillings of one query with one number of masks, the best first."""

    query: int
    n_masks: int
    fillings: tuple[Filling, ...]


class _Batch(NamedTuple):
    """Queries of one length of text, with one number of masks."""

    queries: list[int]
    token_ids: torch.Tensor  # (queries, tokens)
    first: torch.Tensor  # (queries,): place of the first mask
    n_masks: int


class _Beams(NamedTuple):
    """What is kept of each query: fillings so far, their scores, the places still open."""

    token_ids: torch.Tensor  # (queries, beams, tokens)
    scores: torch.Tensor  # (queries, beams), 64 bits
    places: torch.Tensor  # (queries, beams, open places), ascending


def decode(
    model: MaskedLanguageModel,
    prompts: Sequence[str],
    config: DecodingConfig,
    progress: Progress | None = None,
) -> Iterator[Filled]:
    """Fill the blanks of prompts, in no certain order of prompts and lengths.

    A prompt that is too long for the model with so many masks is not filled with them.
    """
    tokens = [_split(model, prompt) for prompt in prompts]
    batches = list(_batches(model, tokens, config))
    costs = [len(b.queries) * b.token_ids.shape[1] * _n_texts(b.n_masks, config) for b in batches]
    n_done, n_all = 0, max(1, sum(costs))
    fill = _fill_at_once if config.order == "independent" else _fill
    for batch, cost in zip(batches, costs, strict=True):
        with torch.inference_mode():
            beams = fill(model, batch, config)
        yield from _write_out(model, batch, beams)
        if progress:
            n_done += cost
            progress.advance(len(batch.queries), n_done / n_all)


def _split(model: MaskedLanguageModel, prompt: str) -> tuple[list[int], list[int]]:
    """Give the tokens of a prompt before and after its blank."""
    ids = model.token_ids(prompt.replace(BLANK, model.tokenizer.mask_token))
    if ids.count(model.mask) != 1:
        raise InputError(f"expected one {BLANK} in each prompt", path=model.name, text=prompt)
    place = ids.index(model.mask)
    return ids[:place], ids[place + 1 :]


def _batches(
    model: MaskedLanguageModel,
    tokens: Sequence[tuple[list[int], list[int]]],
    config: DecodingConfig,
) -> Iterator[_Batch]:
    """Group queries by length of text and number of masks, the longest first."""
    groups: dict[tuple[int, int], list[int]] = {}
    for query, (before, after) in enumerate(tokens):
        for n in config.lengths:
            if (length := len(before) + n + len(after)) <= model.max_length:
                groups.setdefault((length, n), []).append(query)
    room = _MOST_SCORES.get(model.device.type, _MOST_SCORES["cpu"]) // model.n_tokens
    for (_, n), queries in sorted(groups.items(), reverse=True):
        size = config.batch or max(1, room // (n * config.beam))
        for start in range(0, len(queries), size):
            chosen = queries[start : start + size]
            texts = [[*tokens[q][0], *[model.mask] * n, *tokens[q][1]] for q in chosen]
            first = [len(tokens[q][0]) for q in chosen]
            device = model.device
            yield _Batch(
                chosen, torch.tensor(texts, device=device), torch.tensor(first, device=device), n
            )


def _n_texts(n_masks: int, config: DecodingConfig) -> int:
    """Count the texts that the model reads for one query."""
    return 1 if config.order == "independent" else 1 + (n_masks - 1) * config.beam


def _begin(batch: _Batch) -> _Beams:
    slots = torch.arange(batch.n_masks, device=batch.first.device)
    return _Beams(
        batch.token_ids[:, None],
        torch.zeros(len(batch.queries), 1, dtype=torch.float64, device=batch.first.device),
        batch.first[:, None, None] + slots,
    )


def _fill(model: MaskedLanguageModel, batch: _Batch, config: DecodingConfig) -> _Beams:
    """Fill a place at each step, every filling seen by the model again."""
    beams = _begin(batch)
    for _ in range(batch.n_masks):
        n_places = 1 if config.order == "left-to-right" else beams.places.shape[2]
        values, tokens = _best_tokens(
            model, beams.token_ids, beams.places[:, :, :n_places], config.beam
        )
        beams = _extend(beams, values, tokens, config.beam)
    return beams


def _fill_at_once(model: MaskedLanguageModel, batch: _Batch, config: DecodingConfig) -> _Beams:
    """Find the best fillings when no place knows of any other."""
    beams = _begin(batch)
    values, tokens = _best_tokens(model, beams.token_ids, beams.places, config.beam)
    for slot in range(batch.n_masks):
        shape = (-1, beams.scores.shape[1], -1, -1)
        part = slice(slot, slot + 1)
        beams = _extend(
            beams, values[:, :, part].expand(shape), tokens[:, :, part].expand(shape), config.beam
        )
    return beams


def _best_tokens(
    model: MaskedLanguageModel, token_ids: torch.Tensor, places: torch.Tensor, n_best: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Give log probabilities and ids of the best tokens: (queries, beams, places, best).

    Beams of a query that came to the same filling in another order are read once.
    """
    shape = places.shape
    both = torch.cat([token_ids, places], 2).flatten(0, 1)
    rows, origin = torch.unique(both, dim=0, return_inverse=True)
    width = token_ids.shape[2]
    scores = model.scores(rows[:, :width], rows[:, width:]).float()  # (rows, places, vocabulary)
    values, tokens = scores.topk(min(n_best, scores.shape[2]))
    values = values.double() - scores.logsumexp(2, keepdim=True).double()
    return values[origin].view(*shape, -1), tokens[origin].view(*shape, -1)


def _extend(beams: _Beams, values: torch.Tensor, tokens: torch.Tensor, most: int) -> _Beams:
    """Fill one place more: of all beams, places and tokens the best; of equals the first."""
    n_queries, _, n_places, n_tokens = values.shape
    candidates = (beams.scores[:, :, None, None] + values).flatten(1)
    order = candidates.sort(dim=1, descending=True, stable=True).indices[:, :most]
    beam = order // (n_places * n_tokens)
    slot = order // n_tokens % n_places
    queries = torch.arange(n_queries, device=order.device)[:, None]
    open_places = beams.places[queries, beam]  # (queries, kept, open places)
    place = open_places.gather(2, slot[:, :, None])
    token = tokens.flatten(1).gather(1, order)[:, :, None]
    still_open = torch.arange(open_places.shape[2], device=order.device) != slot[:, :, None]
    return _Beams(
        beams.token_ids[queries, beam].scatter(2, place, token),
        candidates.gather(1, order),
        open_places[still_open].view(n_queries, order.shape[1], -1),
    )


def _write_out(model: MaskedLanguageModel, batch: _Batch, beams: _Beams) -> Iterator[Filled]:
    n_beams = beams.scores.shape[1]
    slots = torch.arange(batch.n_masks, device=batch.first.device)
    places = (batch.first[:, None, None] + slots).expand(-1, n_beams, -1)
    texts = model.texts(beams.token_ids.gather(2, places).flatten(0, 1).tolist())
    for row, (query, scores) in enumerate(zip(batch.queries, beams.scores.tolist(), strict=True)):
        own = texts[row * n_beams : (row + 1) * n_beams]
        yield Filled(query, batch.n_masks, tuple(map(Filling, own, scores)))
