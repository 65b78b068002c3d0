"""Find the entities that a sequence of tokens mentions, for models that take entity inputs.

The names of a model's entities, as tokens, are searched from left to right; of those that begin at
one token the longest is taken. Words are not cut: the token after a name must not continue its
last word. Results are cached by sequence.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from biograft.arrays import check_length, open_array
from biograft.artifacts import ArtifactKind, file_sizes, new_folder
from biograft.errors import ConfigError
from biograft.nn.generation.trie import FlatTrie
from biograft.nn.knowledge.entities import TableEntity
from biograft.nn.knowledge.model import KnowledgeBertModel
from biograft.nn.pretrained import describe_tokenizer, quiet_transformers
from biograft.nn.settings import prepare_text

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


FINDER = ArtifactKind(
    format="biograft-entity-finder",
    version=1,
    called="entity finder",
    remedy="remove the folder; it is built again",
    keys=("made_from", "files"),
)
_FOLDER, _ROWS = "finder", "rows.npy"


class EntityFinder:
    """Finds the entities of a table by their names in tokens.

    Names of one character, of digits alone, and with tokens unknown to the tokenizer are skipped.
    A name of several entities means the first one in the table, the most frequent in the training
    text. The names are a trie of tokens; ``rows`` has the entity whose name ends at each node, or
    -1. Opened from a folder, both are memory-mapped, and shared by all processes that do so.
    """

    def __init__(self, trie: FlatTrie, rows: npt.NDArray[np.int32], tokenizer: Any) -> None:
        self.trie, self.rows = trie, rows
        vocabulary = tokenizer.get_vocab()
        self._continuing = {number for token, number in vocabulary.items() if token[:2] == "##"}
        self._cache: OrderedDict[bytes, tuple[EntityMention, ...]] = OrderedDict()

    @classmethod
    def build(
        cls,
        entities: Iterable[TableEntity],
        tokenizer: Any,
        prepare: Callable[[str], str] = str,
    ) -> EntityFinder:
        """Build the finder of some entities; names are normalised like texts, by ``prepare``."""
        tokens, ends, entity_rows = array("i"), array("q"), array("i")
        for row, name in _names(entities, tokenizer, prepare):
            tokens.extend(name)
            ends.append(len(tokens))
            entity_rows.append(row)
        trie, numbers = FlatTrie.build(np.array(tokens, np.int64), np.array(ends, np.int64))
        rows = np.full(trie.n_nodes, -1, np.int32)
        first = np.full(trie.n_sequences, np.iinfo(np.int32).max, np.int32)
        np.minimum.at(first, numbers, np.array(entity_rows, np.int32))
        sequences = trie.sequence_of(np.arange(trie.n_nodes))
        rows[sequences >= 0] = first[sequences[sequences >= 0]]
        return cls(trie, rows, tokenizer)

    def save(self, folder: Path, made_from: Mapping[str, Any]) -> None:
        """Write the finder into a new folder; ``made_from`` says what it was built from."""
        with new_folder(folder, overwrite=True) as work:
            self.trie.save(work)
            np.save(work / _ROWS, self.rows, allow_pickle=False)
            FINDER.write(work, {"made_from": made_from, "files": file_sizes(work)})

    @classmethod
    def open(cls, folder: Path, tokenizer: Any) -> EntityFinder:
        """Memory-map a finder."""
        FINDER.check_files(folder, FINDER.read(folder))
        trie = FlatTrie.open(folder)
        try:
            rows = open_array(folder / _ROWS, np.int32)
            check_length(_ROWS, rows, trie.n_nodes)
        except ValueError as error:
            raise FINDER.damaged(folder / _ROWS, error) from error
        return cls(trie, np.asarray(rows), tokenizer)

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
            found = self._longest(tokens, position)
            if found is not None:
                yield found
                position = found.last
            position += 1

    def _longest(self, tokens: list[int], start: int) -> EntityMention | None:
        """Return the longest name that begins at a token, if any."""
        node, found = self.trie.root, None
        for last in range(start, len(tokens)):
            node = self.trie.child(node, tokens[last])
            if node < 0:
                break
            row = int(self.rows[node])
            if row >= 0 and not self._continuing.intersection(tokens[last + 1 : last + 2]):
                found = EntityMention(start, last, row)
        return found


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


def make_finder(encoder: Any) -> EntityFinder | None:
    """Make the finder of a text encoder's entities; None for a model without entity inputs.

    It is opened where the folder of the encoder has one of the same names and tokens.
    """
    model, tokenizer = encoder.model, encoder.tokenizer
    if not takes_entity_inputs(model):
        return None
    folder = encoder.folder / _FOLDER if encoder.folder else None
    if folder is not None and FINDER.is_at(folder):
        made_from = _describe(model.entities, tokenizer, lower=encoder.lower)
        if FINDER.read(folder)["made_from"] == made_from:
            return EntityFinder.open(folder, tokenizer)
    return EntityFinder.build(model.entities, tokenizer, encoder.prepare)


def save_finder(folder: Path, model: Any, tokenizer: Any, *, lower: bool) -> None:
    """Write the finder of a model beside its weights, if the model takes entity inputs."""
    model = getattr(model, "model", model)
    if takes_entity_inputs(model) and any(entity.names for entity in model.entities):
        finder = EntityFinder.build(model.entities, tokenizer, partial(prepare_text, lower=lower))
        finder.save(folder / _FOLDER, _describe(model.entities, tokenizer, lower=lower))


def _describe(entities: Iterable[TableEntity], tokenizer: Any, *, lower: bool) -> dict[str, Any]:
    """Describe what a finder is built from."""
    described = {
        "names": [list(entity.names) for entity in entities],
        "tokenizer": describe_tokenizer(tokenizer),
    }
    hashed = {
        key: hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
        for key, value in described.items()
    }
    return {**hashed, "lower": lower}


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
