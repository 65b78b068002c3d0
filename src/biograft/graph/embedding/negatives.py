"""False triples: an end of a true one replaced, drawn by counting and not by a state.

Every draw follows from the seed, the epoch, the place of the triple in it and the number of the
draw, so that the threads, or a stop between two epochs, change nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numba
import numpy as np
import numpy.typing as npt

from biograft.graph.embedding.config import SamplingConfig
from biograft.graph.embedding.scoring import in_parts
from biograft.graph.triples import Triples

_GOLDEN, _FIRST, _SECOND = (
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(0x94D049BB133111EB),
)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
TRIES = 64
"""Draws for one false triple before the entities are gone through in order."""

I32: TypeAlias = npt.NDArray[np.int32]
I64: TypeAlias = npt.NDArray[np.int64]


class Sampler(NamedTuple):
    """What false triples are drawn from."""

    pool: I32  # entities to draw from
    head_share: npt.NDArray[np.float64]  # (relations,): how often the head is replaced
    known: I64  # open-addressed table of true triples, -1 where empty; one cell if unfiltered
    n_entities: int
    n_relations: int


def make_sampler(train: Triples, config: SamplingConfig) -> Sampler:
    """Prepare drawing for the triples to learn from."""
    n_relations = len(train.relation_names)
    share = np.full(n_relations, 0.5)
    if config.kind == "bernoulli":
        share = bernoulli_shares(train)
    known = np.full(1, -1, np.int64)
    if config.filtered:
        keys = triple_keys(train)
        known = np.full(1 << max(4, int(2 * len(keys)).bit_length()), -1, np.int64)
        _fill(known, keys)
    pool = np.unique(np.concatenate([train.heads, train.tails]))
    return Sampler(pool, share, known, train.n_entities, n_relations)


def bernoulli_shares(train: Triples) -> npt.NDArray[np.float64]:
    """Give how often the head is replaced: tails a head over that plus heads a tail."""
    n_relations = len(train.relation_names)
    relation = train.relations.astype(np.int64)
    counts = np.bincount(relation, minlength=n_relations)
    ends = []
    for rows in (train.heads, train.tails):
        pairs = np.unique(relation * train.n_entities + rows)
        distinct = np.bincount(pairs // train.n_entities, minlength=n_relations)
        ends.append(counts / np.maximum(distinct, 1))
    tails_a_head, heads_a_tail = ends
    total = tails_a_head + heads_a_tail
    return np.where(total > 0, tails_a_head / np.where(total > 0, total, 1), 0.5)


def triple_keys(triples: Triples) -> I64:
    """Give each triple one number."""
    head = triples.heads.astype(np.int64) * len(triples.relation_names) + triples.relations
    return head * triples.n_entities + triples.tails


@numba.njit(cache=True, nogil=True)
def stir(number: np.uint64) -> np.uint64:
    """Turn a counter into 64 bits that look drawn (SplitMix64)."""
    number = number + _GOLDEN
    number = (number ^ (number >> _S30)) * _FIRST
    number = (number ^ (number >> _S27)) * _SECOND
    return number ^ (number >> _S31)


@numba.njit(cache=True, nogil=True)
def _slot(known: I64, key: Any) -> Any:
    mask = len(known) - 1
    place: Any = np.int64(stir(np.uint64(key)) & np.uint64(mask))
    while known[place] != -1 and known[place] != key:
        place = (place + 1) & mask
    return place


@numba.njit(cache=True, nogil=True)
def _fill(known: I64, keys: Any) -> None:
    for key in keys:
        known[_slot(known, key)] = key


@numba.njit(cache=True, nogil=True)
def is_known(sampler: Sampler, head: int, relation: int, tail: int) -> bool:
    """Say whether a triple is one of those to learn from, as far as they are filtered."""
    if len(sampler.known) == 1:
        return False
    key = (np.int64(head) * sampler.n_relations + relation) * sampler.n_entities + tail
    return bool(sampler.known[_slot(sampler.known, key)] == key)


@numba.njit(cache=True, nogil=True)
def _replaced(sampler: Sampler, triple: tuple[int, int, int], side: int, entity: int) -> bool:
    """Say whether an entity in place of the head (side 0) or tail (1) makes a false triple."""
    head, relation, tail = triple
    if side == 0:
        return entity != head and not is_known(sampler, entity, relation, tail)
    return entity != tail and not is_known(sampler, head, relation, entity)


@numba.njit(cache=True, nogil=True)
def draw(sampler: Sampler, triple: tuple[int, int, int], counter: np.uint64) -> tuple[int, int]:
    """Draw the side that is replaced and the entity that stands there.

    Where all entities make true triples on one side, the other is taken; where they do on both,
    a triple that is true is taken all the same.
    """
    chance = np.float64(stir(counter) >> _S11) / 9007199254740992.0
    side = 0 if chance < sampler.head_share[triple[1]] else 1
    size = np.uint64(len(sampler.pool))
    entity = 0
    for turn in range(1, TRIES):
        entity = sampler.pool[np.int64(stir(counter + np.uint64(turn)) % size)]
        if _replaced(sampler, triple, side, entity):
            return side, entity
    start = np.int64(stir(counter) % size)
    for other in range(2):
        for step in range(len(sampler.pool)):
            candidate = sampler.pool[(start + step) % len(sampler.pool)]
            if _replaced(sampler, triple, side ^ other, candidate):
                return side ^ other, candidate
    return side, entity


def draw_batch(
    sampler: Sampler, batch: tuple[I32, I32, I32], places: I64, seed: np.uint64, n_negatives: int
) -> tuple[I32, npt.NDArray[np.uint8]]:
    """Draw false triples for those of a batch: entities and sides, (batch, negatives)."""
    shape = (len(places), n_negatives)
    entities, sides = np.empty(shape, np.int32), np.empty(shape, np.uint8)
    in_parts(_draw_batch, len(places), sampler, (*batch, places), seed, (entities, sides))
    return entities, sides


@numba.njit(cache=True, nogil=True)
def _draw_batch(
    first: int,
    last: int,
    sampler: Sampler,
    batch: tuple[I32, I32, I32, I64],
    seed: np.uint64,
    out: tuple[I32, npt.NDArray[np.uint8]],
) -> None:
    heads, relations, tails, places = batch
    entities, sides = out
    n_negatives = entities.shape[1]
    for i in range(first, last):
        triple = (heads[i], relations[i], tails[i])
        for k in range(n_negatives):
            number = np.uint64(places[i] * n_negatives + k)
            side, entity = draw(sampler, triple, stir(seed ^ stir(number)))
            sides[i, k] = side
            entities[i, k] = entity
