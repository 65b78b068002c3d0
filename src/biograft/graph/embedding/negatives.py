"""Negative sampling: corrupt the head or the tail of a triple, with a counter-based generator.

Every sample follows from the seed, the epoch, the position of the triple in it and the index of
the negative, so that neither threads nor resuming change the results.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from biograft.compute import njit
from biograft.graph.embedding.config import SamplingConfig
from biograft.graph.embedding.parallel import run_parallel
from biograft.graph.triples import Triples

_GOLDEN, _FIRST, _SECOND = (
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(0x94D049BB133111EB),
)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
MAX_TRIES = 64
"""Random tries for one negative before the entities are tried in order."""

I32: TypeAlias = npt.NDArray[np.int32]
I64: TypeAlias = npt.NDArray[np.int64]


class NegativeSampler(NamedTuple):
    """Entities, probabilities and known triples for sampling."""

    pool: I32  # entities to sample from
    head_probability: npt.NDArray[np.float64]  # (relations,): probability to replace the head
    known: I64  # hash table of true triples, -1 where empty; of size 1 if unfiltered
    n_entities: int
    n_relations: int


def make_sampler(train: Triples, config: SamplingConfig) -> NegativeSampler:
    """Build the sampler of the training triples."""
    n_relations = len(train.relation_names)
    probability = np.full(n_relations, 0.5)
    if config.kind == "bernoulli":
        probability = bernoulli_probabilities(train)
    known = np.full(1, -1, np.int64)
    if config.filtered:
        keys = triple_keys(train)
        known = np.full(1 << max(4, int(2 * len(keys)).bit_length()), -1, np.int64)
        _fill(known, keys)
    pool = np.unique(np.concatenate([train.heads, train.tails]))
    return NegativeSampler(pool, probability, known, train.n_entities, n_relations)


def bernoulli_probabilities(train: Triples) -> npt.NDArray[np.float64]:
    """Return the probability to replace the head: tph / (tph + hpt), as in TransH.

    tph is the mean number of tails per head of a relation, hpt that of heads per tail.
    """
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
    """Return a unique integer for each triple."""
    head = triples.heads.astype(np.int64) * len(triples.relation_names) + triples.relations
    return head * triples.n_entities + triples.tails


@njit()
def splitmix64(number: np.uint64) -> np.uint64:
    """Turn a counter into 64 pseudo-random bits (SplitMix64)."""
    number = number + _GOLDEN
    number = (number ^ (number >> _S30)) * _FIRST
    number = (number ^ (number >> _S27)) * _SECOND
    return number ^ (number >> _S31)


@njit()
def _slot(known: I64, key: Any) -> Any:
    mask = len(known) - 1
    index: Any = np.int64(splitmix64(np.uint64(key)) & np.uint64(mask))
    while known[index] != -1 and known[index] != key:
        index = (index + 1) & mask
    return index


@njit()
def _fill(known: I64, keys: Any) -> None:
    for key in keys:
        known[_slot(known, key)] = key


@njit()
def is_known(sampler: NegativeSampler, head: int, relation: int, tail: int) -> bool:
    """Whether a triple is a training triple; always False if unfiltered."""
    if len(sampler.known) == 1:
        return False
    key = (np.int64(head) * sampler.n_relations + relation) * sampler.n_entities + tail
    return bool(sampler.known[_slot(sampler.known, key)] == key)


@njit()
def _is_negative(
    sampler: NegativeSampler, triple: tuple[int, int, int], side: int, entity: int
) -> bool:
    """Whether replacing the head (side 0) or tail (1) by an entity gives a negative."""
    head, relation, tail = triple
    if side == 0:
        return entity != head and not is_known(sampler, entity, relation, tail)
    return entity != tail and not is_known(sampler, head, relation, entity)


@njit()
def sample_negative(
    sampler: NegativeSampler, triple: tuple[int, int, int], counter: np.uint64
) -> tuple[int, int]:
    """Sample the side to replace and the replacing entity.

    If one side has no negatives the other is taken; if neither has, a true triple is returned.
    """
    chance = np.float64(splitmix64(counter) >> _S11) / 9007199254740992.0
    side = 0 if chance < sampler.head_probability[triple[1]] else 1
    size = np.uint64(len(sampler.pool))
    entity = 0
    for attempt in range(1, MAX_TRIES):
        entity = sampler.pool[np.int64(splitmix64(counter + np.uint64(attempt)) % size)]
        if _is_negative(sampler, triple, side, entity):
            return side, entity
    start = np.int64(splitmix64(counter) % size)
    for flip in range(2):
        for step in range(len(sampler.pool)):
            candidate = sampler.pool[(start + step) % len(sampler.pool)]
            if _is_negative(sampler, triple, side ^ flip, candidate):
                return side ^ flip, candidate
    return side, entity


def sample_negatives(
    sampler: NegativeSampler,
    batch: tuple[I32, I32, I32],
    positions: I64,
    seed: np.uint64,
    n_negatives: int,
) -> tuple[I32, npt.NDArray[np.uint8]]:
    """Sample negatives for the triples of a batch: entities and sides, (batch, negatives)."""
    shape = (len(positions), n_negatives)
    entities, sides = np.empty(shape, np.int32), np.empty(shape, np.uint8)
    run_parallel(
        _sample_negatives, len(positions), sampler, (*batch, positions), seed, (entities, sides)
    )
    return entities, sides


@njit()
def _sample_negatives(
    first: int,
    last: int,
    sampler: NegativeSampler,
    batch: tuple[I32, I32, I32, I64],
    seed: np.uint64,
    out: tuple[I32, npt.NDArray[np.uint8]],
) -> None:
    heads, relations, tails, positions = batch
    entities, sides = out
    n_negatives = entities.shape[1]
    for i in range(first, last):
        triple = (heads[i], relations[i], tails[i])
        for k in range(n_negatives):
            number = np.uint64(positions[i] * n_negatives + k)
            side, entity = sample_negative(sampler, triple, splitmix64(seed ^ splitmix64(number)))
            sides[i, k] = side
            entities[i, k] = entity
