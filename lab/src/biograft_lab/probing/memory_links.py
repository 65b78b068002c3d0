"""Links of mentions by the entity memory of KeBioLM: the entity of the table nearest to a mention.

The memory reads a mention in its text after the text-only layers, and scores every entity of the
table by the inner product, as in the objective that it was trained with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch

import biograft.models.knowledge  # noqa: F401 - so that transformers knows models with its layers
from biograft.errors import ConfigError
from biograft.models.pretrained import load_masked_lm, max_input_tokens

_REACH = 400
"""Characters of text on either side of a mention that are tokenised."""


class MentionInText(NamedTuple):
    """A text, and where its mention starts and ends."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class MemoryLinker:
    """A model with an entity memory, its tokenizer, and the most tokens that it reads at once."""

    model: Any
    tokenizer: Any
    max_tokens: int

    @classmethod
    def from_pretrained(cls, folder: str | Path, *, max_tokens: int = 64) -> MemoryLinker:
        """Load a model; one without an entity memory, or with unnamed entities, is refused."""
        loaded = load_masked_lm(folder)
        if "entity_memory" not in getattr(loaded.model.config, "layer_configs", dict)():
            raise ConfigError(f"{folder}: has no entity memory; pre-train it by a kebiolm recipe")
        if not loaded.model.entities:
            raise ConfigError(f"{folder}: does not name its entities; pre-train it again")
        longest = max_input_tokens(loaded.model, loaded.tokenizer)
        return cls(loaded.model.eval(), loaded.tokenizer, min(max_tokens, longest))

    @property
    def entities(self) -> list[str]:
        """The ids of the entities of the table."""
        return [entity.id for entity in self.model.entities]

    @torch.no_grad()
    def link(self, mentions: Sequence[MentionInText], batch_size: int = 32) -> list[str]:
        """Return the nearest entity of each mention."""
        nearest: list[int] = []
        table = self.model.model.entity_table.weight
        windows = [self._window(mention) for mention in mentions]
        for start in range(0, len(windows), batch_size):
            queries = self._queries(windows[start : start + batch_size])
            nearest += (queries @ table.T).argmax(dim=1).tolist()
        entities = self.entities
        return [entities[row] for row in nearest]

    def _queries(self, windows: Sequence[tuple[list[int], int, int]]) -> torch.Tensor:
        """Read the mentions of a batch, one a sequence: (mentions, dim)."""
        longest = max(len(tokens) for tokens, _, _ in windows)
        padding = self.tokenizer.pad_token_id
        rows = [tokens + [padding] * (longest - len(tokens)) for tokens, _, _ in windows]
        mask = [[1] * len(tokens) + [0] * (longest - len(tokens)) for tokens, _, _ in windows]
        spans = [[row, first, last] for row, (_, first, last) in enumerate(windows)]
        output = self.model.model(
            input_ids=torch.tensor(rows),
            attention_mask=torch.tensor(mask),
            mentions=torch.tensor(spans),
        )
        queries: torch.Tensor = output.queries
        return queries

    def _window(self, mention: MentionInText) -> tuple[list[int], int, int]:
        """Return the tokens around a mention, and its first and last token."""
        left = max(0, mention.start - _REACH)
        encoded = self.tokenizer(
            mention.text[left : mention.end + _REACH],
            add_special_tokens=False,
            return_offsets_mapping=True,
            verbose=False,
        )
        start, end = mention.start - left, mention.end - left
        own = [row for row, (a, b) in enumerate(encoded["offset_mapping"]) if a < end and b > start]
        first, last = (own[0], own[-1]) if own else (0, 0)
        room = self.max_tokens - 2
        last = min(last, first + room - 1)
        ids = encoded["input_ids"] or [self.tokenizer.unk_token_id]
        begin = max(0, min(first - (room - (last - first + 1)) // 2, len(ids) - room))
        tokens = ids[begin : begin + room]
        whole = [self.tokenizer.cls_token_id, *tokens, self.tokenizer.sep_token_id]
        return whole, first - begin + 1, last - begin + 1
