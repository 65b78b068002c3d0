"""Which entities a sequence of tokens names, for models that must be told.

The names of a model's entities, in tokens, are looked for from left to right; of those that begin
at one token the longest is taken. Words are not cut: what follows a name must not go on with its
last word. A sequence is searched once and remembered.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from biograft.errors import ConfigError
from biograft.nn.knowledge.entities import Entity
from biograft.nn.knowledge.model import KnowledgeBertModel
from biograft.nn.knowledge_layers import NEIGHBOURS
from biograft.nn.pretrained import quiet_transformers

_REMEMBERED = 200_000
_NAMES_AT_ONCE = 10_000


class FoundMention(NamedTuple):
    """First and last token, and the row of the entity."""

    first: int
    last: int
    row: int


class EntityFinder:
    """Finds the entities of a table in tokens.

    Names of one character, of digits alone, and with what the tokenizer does not know are none. A
    name of several entities is that of the first one in the table, the most frequent of the text
    that the model learned from. Of the mentions a ``share`` is told, always the same ones, and of a
    larger share those of a smaller. Names are read as texts are, by ``prepare``.
    """

    def __init__(
        self,
        entities: Iterable[Entity],
        tokenizer: Any,
        share: float = 1.0,
        prepare: Callable[[str], str] = str,
    ) -> None:
        self.share = share
        self._rows: dict[tuple[int, ...], int] = {}
        lengths: dict[int, set[int]] = defaultdict(set)
        for row, tokens in _names(entities if share else (), tokenizer, prepare):
            self._rows.setdefault(tokens, row)
            lengths[tokens[0]].add(len(tokens))
        self._lengths = {first: sorted(some, reverse=True) for first, some in lengths.items()}
        vocabulary = tokenizer.get_vocab()
        self._goes_on = {number for token, number in vocabulary.items() if token.startswith("##")}
        self._remembered: OrderedDict[bytes, tuple[FoundMention, ...]] = OrderedDict()

    def find(self, tokens: Sequence[int]) -> tuple[FoundMention, ...]:
        """Find the entities that a sequence names, from left to right, disjoint."""
        key = np.asarray(tokens, np.int32).tobytes()
        if key not in self._remembered:
            found = tuple(self._search(list(tokens)))
            self._remembered[key] = self._thin(found, zlib.crc32(key))
            if len(self._remembered) > _REMEMBERED:
                self._remembered.popitem(last=False)
        return self._remembered[key]

    def tell(self, input_ids: Tensor, attention_mask: Tensor) -> dict[str, Tensor]:
        """Give ``mentions`` and ``entities`` of a batch, as a model with knowledge takes them.

        Sequences are filled up on their right; what is found does not depend on it.
        """
        lengths = attention_mask.sum(1).tolist()
        rows = [
            (sequence, found.first, found.last, found.row)
            for sequence, (tokens, n) in enumerate(zip(input_ids.tolist(), lengths, strict=True))
            for found in self.find(tokens[:n])
        ]
        told = torch.tensor(rows, dtype=torch.long, device=input_ids.device).view(-1, 4)
        return {"mentions": told[:, :3], "entities": told[:, 3]}

    def _search(self, tokens: list[int]) -> Iterable[FoundMention]:
        place = 0
        while place < len(tokens):
            for length in self._lengths.get(tokens[place], ()):
                end = place + length
                row = self._rows.get(tuple(tokens[place:end])) if end <= len(tokens) else None
                if row is not None and not self._goes_on.intersection(tokens[end : end + 1]):
                    yield FoundMention(place, end - 1, row)
                    place = end - 1
                    break
            place += 1

    def _thin(self, found: tuple[FoundMention, ...], seed: int) -> tuple[FoundMention, ...]:
        if self.share >= 1:
            return found
        draws = np.random.default_rng(seed).random(len(found))
        return tuple(each for each, draw in zip(found, draws, strict=True) if draw < self.share)


def is_told(model: Any) -> bool:
    """Whether a model must be told which entities a text names."""
    return isinstance(model, KnowledgeBertModel) and model.mention_reader is not None


def make_finder(
    model: Any, tokenizer: Any, prepare: Callable[[str], str] = str
) -> EntityFinder | None:
    """Make what finds the entities that a model must be told; none for one that needs none."""
    if not is_told(model):
        return None
    return EntityFinder(model.entities, tokenizer, model.config.told_share, prepare)


def limit_knowledge(model: Any, share: float | None, n_neighbours: int | None) -> None:
    """Tell a model a share of the mentions alone, and fewer neighbours; it is saved like that."""
    if share is not None:
        if not 0 <= share <= 1:
            raise ConfigError(f"told_share: expected a share from 0 to 1, found {share}")
        model.config.told_share = share
    if n_neighbours is not None:
        if NEIGHBOURS not in model.knowledge:
            raise ConfigError("n_neighbours: the encoder sees no neighbours; leave it out")
        model.knowledge[NEIGHBOURS].keep_neighbours(n_neighbours)
        model.config.n_neighbours = n_neighbours


def _names(
    entities: Iterable[Entity], tokenizer: Any, prepare: Callable[[str], str]
) -> Iterable[tuple[int, tuple[int, ...]]]:
    """Give the tokens of all names, and the row each is of."""
    rows, names = [], []
    for row, entity in enumerate(entities):
        for name in dict.fromkeys(entity.names):
            if len(name) > 1 and not name.isdigit():
                rows.append(row)
                names.append(prepare(name))
    for start in range(0, len(names), _NAMES_AT_ONCE):
        with quiet_transformers():
            found = tokenizer(
                names[start : start + _NAMES_AT_ONCE],
                add_special_tokens=False, return_attention_mask=False, return_token_type_ids=False,
            )["input_ids"]  # fmt: skip
        for row, tokens in zip(rows[start:], found, strict=False):
            if tokens and tokenizer.unk_token_id not in tokens:
                yield row, tuple(tokens)
