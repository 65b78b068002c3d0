"""Text as numbers without special tokens, and what a sequence is framed with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from biograft.errors import ConfigError
from biograft.nn import TextEncoder
from biograft.nn.loading import quiet_transformers

Ints = npt.NDArray[np.int64]
_BLANKS = ("▁", "Ġ")
"""How SentencePiece and byte-level BPE write a blank."""


@dataclass(frozen=True, slots=True)
class TextTokens:
    """The tokens of a text, and where in it each stands."""

    ids: list[int]
    offsets: Ints  # (tokens, 2)


class TaskTokenizer:
    """The tokenizer of an encoder, which must be a fast one: only those say where tokens stand."""

    def __init__(self, encoder: TextEncoder) -> None:
        if not getattr(encoder.tokenizer, "is_fast", False):
            raise ConfigError(
                f"{encoder.name}: its tokenizer does not say where in the text tokens stand; "
                "convert it to a fast one (tokenizer.json)"
            )
        self._tokenizer, self._lower = encoder.tokenizer, encoder.lower
        self._pieces: dict[str, list[int]] = {}
        special = [int(i) for i in encoder.tokenizer.encode("")]
        opening = {encoder.tokenizer.cls_token_id, encoder.tokenizer.bos_token_id}
        n_before = int(bool(special) and special[0] in opening)
        self._before, self._after = special[:n_before], special[n_before:]
        self.room = encoder.max_length - len(special)
        """Tokens of text that a sequence holds."""

    @property
    def n_before(self) -> int:
        """How many special tokens stand before the text."""
        return len(self._before)

    def frame(self, ids: Sequence[int]) -> list[int]:
        """Put the special tokens around a sequence."""
        return [*self._before, *ids, *self._after]

    def read(self, texts: Sequence[str]) -> list[TextTokens]:
        """Tokenise texts, however long they are."""
        if not texts:
            return []
        with quiet_transformers():  # of its word on long texts
            encoded: Any = self._tokenizer(
                [self._lowered(text) for text in texts],
                add_special_tokens=False,
                return_offsets_mapping=True,
                return_attention_mask=False,
                return_token_type_ids=False,
            )
        return [
            TextTokens(ids, np.array(offsets, np.int64).reshape(-1, 2))
            for ids, offsets in zip(encoded["input_ids"], encoded["offset_mapping"], strict=True)
        ]

    def read_piece(self, piece: str) -> list[int]:
        """Tokenise a piece as it stands within a text, without the mark of a blank before it."""
        if piece not in self._pieces:
            [tokens] = self.read([piece])
            names = self._tokenizer.convert_ids_to_tokens(tokens.ids)
            held = [
                token for token, name in zip(tokens.ids, names, strict=True) if name not in _BLANKS
            ]
            self._pieces[piece] = held or tokens.ids
        return self._pieces[piece]

    def _lowered(self, text: str) -> str:
        """Lowercase, if the encoder wants it, letter by letter so that offsets stay."""
        if not self._lower:
            return text
        return "".join(low if len(low := letter.lower()) == 1 else letter for letter in text)
