"""Find the entities that a sequence of tokens mentions, for models that take entity inputs.

The names of a model's entities, as tokens, are searched from left to right; of those that begin at
one token the longest is taken. Words are not cut: the token after a name must not continue its
last word. Results are cached by sequence.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from biograft.errors import ConfigError
from biograft.nn.knowledge.entities import TableEntity
from biograft.nn.knowledge.model import KnowledgeBertModel
from biograft.nn.pretrained import quiet_transformers

_MAX_CACHED = 200_000
_NAMES_PER_BATCH = 10_000


class EntityMention(NamedTuple):
    """A mention of an entity: first and last token, and the row of the entity."""

    first: int
    last: int
    row: int


class EntityMentions(Protocol):
    """Finds the entities that a sequence mentions: ``EntityFinder`` or ``EntityCoverage``."""

    def find(self, tokens: Sequence[int]) -> tuple[EntityMention, ...]:
        """Find the entity mentions of a sequence, from left to right, disjoint."""


class EntityFinder:
    """Finds the entities of a table by their names in tokens.

    Names of one character, of digits alone, and with tokens unknown to the tokenizer are skipped.
    A name of several entities means the first one in the table, the most frequent in the training
    text. Names are normalised like texts, by ``prepare``.
    """

    def __init__(
        self,
        entities: Iterable[TableEntity],
        tokenizer: Any,
        prepare: Callable[[str], str] = str,
    ) -> None:
        self._rows: dict[tuple[int, ...], int] = {}
        lengths: dict[int, set[int]] = defaultdict(set)
        for row, tokens in _names(entities, tokenizer, prepare):
            self._rows.setdefault(tokens, row)
            lengths[tokens[0]].add(len(tokens))
        self._lengths = {first: sorted(some, reverse=True) for first, some in lengths.items()}
        vocabulary = tokenizer.get_vocab()
        self._continuing = {number for token, number in vocabulary.items() if token[:2] == "##"}
        self._cache: OrderedDict[bytes, tuple[EntityMention, ...]] = OrderedDict()

    def find(self, tokens: Sequence[int]) -> tuple[EntityMention, ...]:
        """Find the entity mentions of a sequence, from left to right, disjoint."""
        key = _key(tokens)
        if key not in self._cache:
            self._cache[key] = tuple(self._search(list(tokens)))
            if len(self._cache) > _MAX_CACHED:
                self._cache.popitem(last=False)
        return self._cache[key]

    def _search(self, tokens: list[int]) -> Iterable[EntityMention]:
        position = 0
        while position < len(tokens):
            for length in self._lengths.get(tokens[position], ()):
                end = position + length
                row = self._rows.get(tuple(tokens[position:end])) if end <= len(tokens) else None
                if row is not None and not self._continuing.intersection(tokens[end : end + 1]):
                    yield EntityMention(position, end - 1, row)
                    position = end - 1
                    break
            position += 1


class EntityCoverage:
    """Keeps a ratio of the mentions that a finder finds, to measure what entity inputs contribute.

    The choice depends on the sequence alone, and a larger ratio keeps those of a smaller one.
    """

    def __init__(self, finder: EntityMentions, ratio: float) -> None:
        if not 0 <= ratio <= 1:
            raise ConfigError(f"entity_coverage: expected a number from 0 to 1, found {ratio}")
        self.finder, self.ratio = finder, ratio

    def find(self, tokens: Sequence[int]) -> tuple[EntityMention, ...]:
        """Find the covered entity mentions of a sequence."""
        mentions = self.finder.find(tokens)
        chances = np.random.default_rng(zlib.crc32(_key(tokens))).random(len(mentions))
        sampled = zip(mentions, chances, strict=True)
        return tuple(mention for mention, chance in sampled if chance < self.ratio)


def entity_inputs(
    finder: EntityMentions, input_ids: Tensor, attention_mask: Tensor
) -> dict[str, Tensor]:
    """Compute ``mentions`` and ``entities`` of a batch, inputs of a model with knowledge layers.

    Sequences are padded on the right; the result does not depend on padding.
    """
    lengths = attention_mask.sum(1).tolist()
    rows = [
        (sequence, mention.first, mention.last, mention.row)
        for sequence, (tokens, n) in enumerate(zip(input_ids.tolist(), lengths, strict=True))
        for mention in finder.find(tokens[:n])
    ]
    table = torch.tensor(rows, dtype=torch.long, device=input_ids.device).view(-1, 4)
    return {"mentions": table[:, :3], "entities": table[:, 3]}


def takes_entity_inputs(model: Any) -> bool:
    """Whether a model needs the linked entities of a text as inputs."""
    return isinstance(model, KnowledgeBertModel) and model.mention_reader is not None


def make_finder(
    model: Any, tokenizer: Any, prepare: Callable[[str], str] = str
) -> EntityFinder | None:
    """Make the finder of a model's entities; None for a model without entity inputs."""
    if not takes_entity_inputs(model):
        return None
    return EntityFinder(model.entities, tokenizer, prepare)


def limit_coverage(encoder: Any, ratio: float) -> None:
    """Let a text encoder use only a ratio of the entity mentions that it finds."""
    if encoder.finder is None:
        raise ConfigError(
            f"entity_coverage: {encoder.name} has no knowledge layer that takes entity inputs; "
            "leave it out"
        )
    encoder.finder = EntityCoverage(encoder.finder, ratio)


def _key(tokens: Sequence[int]) -> bytes:
    return np.asarray(tokens, np.int32).tobytes()


def _names(
    entities: Iterable[TableEntity], tokenizer: Any, prepare: Callable[[str], str]
) -> Iterable[tuple[int, tuple[int, ...]]]:
    """Tokenise all names; yield the row of the entity and the tokens."""
    rows, names = [], []
    for row, entity in enumerate(entities):
        for name in dict.fromkeys(entity.names):
            if len(name) > 1 and not name.isdigit():
                rows.append(row)
                names.append(prepare(name))
    for start in range(0, len(names), _NAMES_PER_BATCH):
        with quiet_transformers():
            batch = tokenizer(
                names[start : start + _NAMES_PER_BATCH],
                add_special_tokens=False, return_attention_mask=False, return_token_type_ids=False,
            )["input_ids"]  # fmt: skip
        for row, tokens in zip(rows[start:], batch, strict=False):
            if tokens and tokenizer.unk_token_id not in tokens:
                yield row, tuple(tokens)
