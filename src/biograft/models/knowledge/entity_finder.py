"""Find the entities that a sequence of tokens mentions, for models that take entity inputs.

The names of a model's entities are searched in the text that the tokens spell, by the rule of
corpus annotation: normalised names of whole words, full-width and traditional Chinese characters
folded; of overlapping names the longest. Results are cached by sequence.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from biograft.errors import ConfigError
from biograft.kb.names import APOSTROPHES
from biograft.models.knowledge.entities import TableEntity
from biograft.models.knowledge.model import KnowledgeBertModel
from biograft.text import NamesIndex, NamesIndexConfig

_MAX_CACHED = 200_000
_CONTINUES = "##"
"""Prefix of WordPiece tokens that continue a word."""


class EntityMention(NamedTuple):
    """A mention of an entity: first and last token, and the row of the entity."""

    first: int
    """Index of the first token."""
    last: int
    """Index of the last token."""
    row: int
    """Row of the entity in the table."""


class EntityMentions(Protocol):
    """Finds the entities that a sequence mentions: ``EntityFinder`` or ``EntityCoverage``."""

    def find(self, tokens: Sequence[int]) -> tuple[EntityMention, ...]:
        """Find the entity mentions of a sequence, from left to right, disjoint."""


_UNKNOWN = "\ufffd"
"""Stands for special and unknown tokens; it is in no name."""


class EntityFinder:
    """Finds the entities of a table by their names in the text that tokens spell.

    Names and text are compared as annotation does (``biograft.text.names_index``). A name of
    several entities means the first one in the table, the most frequent in the training text.

    Args:
        entities: Entities of the table, with their names.
        tokenizer: Tokenizer whose tokens spell the text.
        cased: The tokens keep the case of their text; without it acronyms match in any.
    """

    def __init__(
        self, entities: Iterable[TableEntity], tokenizer: Any, *, cased: bool = False
    ) -> None:
        named = [(row, name) for row, entity in enumerate(entities) for name in entity.names]
        self._rows = [row for row, _ in named]
        config = NamesIndexConfig() if cased else NamesIndexConfig(acronym_length=0)
        self._names = NamesIndex.build((name for _, name in named), config)
        self._spelling = TokenSpelling(tokenizer)
        self._cache: OrderedDict[bytes, tuple[EntityMention, ...]] = OrderedDict()

    def find(self, tokens: Sequence[int]) -> tuple[EntityMention, ...]:
        """Find the entity mentions of a sequence, from left to right, disjoint."""
        key = _key(tokens)
        if key not in self._cache:
            self._cache[key] = tuple(self._search(tokens))
            if len(self._cache) > _MAX_CACHED:
                self._cache.popitem(last=False)
        return self._cache[key]

    def _search(self, tokens: Sequence[int]) -> Iterator[EntityMention]:
        text, starts, ends = self._spelling.spell(tokens)
        first_at = {start: number for number, start in enumerate(starts)}
        last_at = {end: number for number, end in enumerate(ends)}
        for match in self._names.find_disjoint(text):
            first, last = first_at.get(match.start), last_at.get(match.end)
            if first is not None and last is not None:
                yield EntityMention(first, last, self._rows[match.name_rows[0]])


class TokenSpelling:
    """Joins tokens of WordPiece to the text that they spell, with the offsets of each."""

    def __init__(self, tokenizer: Any) -> None:
        apart = {*tokenizer.all_special_ids, *tokenizer.get_added_vocab().values()}
        self._tokens = {
            number: _UNKNOWN if number in apart else token
            for token, number in tokenizer.get_vocab().items()
        }

    def spell(self, tokens: Sequence[int]) -> tuple[str, list[int], list[int]]:
        """Return the text, and where each token starts and ends in it.

        Words are a space apart, except around an apostrophe, which may be within a word.
        """
        parts: list[str] = []
        starts, ends, length, joined = [], [], 0, True
        for number in tokens:
            token = self._tokens.get(number, _UNKNOWN)
            continues, is_quote = token.startswith(_CONTINUES), token in APOSTROPHES
            written = token.removeprefix(_CONTINUES) if continues else token
            if not (continues or is_quote or joined):
                parts.append(" ")
                length += 1
            parts.append(written)
            starts.append(length)
            length += len(written)
            ends.append(length)
            joined = is_quote
        return "".join(parts), starts, ends


class EntityCoverage:
    """Keeps a ratio of the mentions that a finder finds, to measure what entity inputs contribute.

    The choice depends on the sequence alone, and a larger ratio keeps those of a smaller one.

    Args:
        finder: Finder of the mentions.
        ratio: Ratio that is kept, from 0 to 1.
    """

    def __init__(self, finder: EntityMentions, ratio: float) -> None:
        if not 0 <= ratio <= 1:
            raise ConfigError(f"entity_coverage: expected a number from 0 to 1, found {ratio}")
        self.finder, self.ratio = finder, ratio

    def find(self, tokens: Sequence[int]) -> tuple[EntityMention, ...]:
        """Find the covered entity mentions of a sequence."""
        mentions = self.finder.find(tokens)
        chances = np.random.default_rng(zlib.crc32(_key(tokens))).random(len(mentions))
        kept = zip(mentions, chances, strict=True)
        return tuple(mention for mention, chance in kept if chance < self.ratio)


def entity_inputs(
    finder: EntityMentions, input_ids: Tensor, attention_mask: Tensor
) -> dict[str, Tensor]:
    """Compute ``mentions`` and ``entities`` of a batch, inputs of a model with knowledge layers.

    Sequences are padded on the right; the result does not depend on padding.

    Args:
        finder: Finds the entities of token ids.
        input_ids: Token ids of a batch: (sequences, length).
        attention_mask: 1 where there is a token: (sequences, length).
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


def make_finder(model: Any, tokenizer: Any, *, cased: bool = False) -> EntityFinder | None:
    """Make the finder of a model's entities; None for a model without entity inputs.

    Args:
        model: A model, with knowledge layers or without.
        tokenizer: Its tokenizer.
        cased: The tokens keep the case of their text.
    """
    if not takes_entity_inputs(model):
        return None
    return EntityFinder(model.entities, tokenizer, cased=cased)


def limit_coverage(encoder: Any, ratio: float) -> None:
    """Let a text encoder use only a ratio of the entity mentions that it finds.

    Args:
        encoder: A text encoder with entity inputs.
        ratio: Ratio that is kept, from 0 to 1.
    """
    if encoder.finder is None:
        raise ConfigError(
            f"entity_coverage: {encoder.name} has no knowledge layer that takes entity inputs; "
            "leave it out"
        )
    encoder.finder = EntityCoverage(encoder.finder, ratio)


def _key(tokens: Sequence[int]) -> bytes:
    return np.asarray(tokens, np.int32).tobytes()
