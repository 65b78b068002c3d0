"""Text as numbers without special tokens, and what a sequence is framed with."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from biograft.corpus.alignment import NONE, align_spans
from biograft.errors import ConfigError
from biograft.nn import TextEncoder
from biograft.nn.pretrained import quiet_transformers

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


def tokens_of_words(
    text: str, words: Ints, tokens: TextTokens, tokenizer: TaskTokenizer
) -> list[list[int]]:
    """Give the tokens of each word, none where it has none; words (words, 2) are in order."""
    touched = align_spans(words, tokens.offsets)  # first and last word of each token
    alone = np.zeros(len(words), bool)
    for first, last in touched[touched[:, 0] < touched[:, 1]].tolist():
        alone[first : last + 1] = True
    found: list[list[int]] = [[] for _ in words]
    for number, token in zip(touched[:, 0].tolist(), tokens.ids, strict=True):
        if number != NONE and not alone[number]:
            found[number].append(token)
    for number in np.flatnonzero(alone).tolist():
        start, end = words[number].tolist()
        found[number] = tokenizer.read_piece(text[start:end])
    return found


LEAST_ROOM = 8
"""Tokens below which next to nothing of two texts would be read."""
_AT_ONCE = 2000


@dataclass(frozen=True, slots=True)
class TextSequence:
    """Texts framed as the encoder's tokenizer frames them."""

    tokens: array[int]
    segments: array[int]
    """Of which text each token is; nothing where the encoder does not read that."""
    cut: bool
    """Whether the encoder reads less than there is."""
    labels: tuple[int, ...] = ()
    """Numbers of its classes, where they are known and wanted."""

    @property
    def places(self) -> tuple[int, ...]:
        """The opening token."""
        return (0,)


class TextReader:
    """Makes sequences of texts; what is too long is cut at the end of the longer text."""

    def __init__(self, encoder: TextEncoder) -> None:
        self._encoder, tokenizer = encoder, encoder.tokenizer
        self._opening = {tokenizer.cls_token_id, tokenizer.bos_token_id}
        room = encoder.max_length - tokenizer.num_special_tokens_to_add(pair=True)
        if room < LEAST_ROOM:
            raise ConfigError(
                f"max_length: leaves room for {room} tokens of two texts; expected at least "
                f"{LEAST_ROOM}"
            )
        self._has_types = int(getattr(encoder.model.config, "type_vocab_size", 0) or 0) > 1

    def read(self, texts: Sequence[tuple[str, ...]]) -> list[TextSequence]:
        """Make the sequence of each one or two texts."""
        sequences: dict[int, TextSequence] = {}
        for n_texts in (1, 2):
            rows = [row for row, together in enumerate(texts) if len(together) == n_texts]
            for start in range(0, len(rows), _AT_ONCE):
                some = rows[start : start + _AT_ONCE]
                sequences.update(zip(some, self._read([texts[row] for row in some]), strict=True))
        return [sequences[row] for row in range(len(texts))]

    def count_cut(self, sequences: Iterable[TextSequence]) -> Counter[str]:
        """Count the sequences that are cut, as what is lost."""
        n_cut = sum(sequence.cut for sequence in sequences)
        limit = self._encoder.max_length
        return Counter({f"texts cut to {limit} tokens": n_cut} if n_cut else {})

    def _read(self, texts: Sequence[tuple[str, ...]]) -> Iterable[TextSequence]:
        """Make sequences of texts of which all are single, or all are two."""
        encoded: Any = self._encoder.tokenizer(
            *([self._encoder.prepare(text) for text in side] for side in zip(*texts, strict=True)),
            truncation="longest_first",
            max_length=self._encoder.max_length,
            return_attention_mask=False,
            return_token_type_ids=self._has_types,
        )
        types = encoded["token_type_ids"] if self._has_types else [()] * len(texts)
        # slow tokenizers do not say what they cut off
        cut = [bool(e.overflowing) for e in encoded.encodings or ()] or [False] * len(texts)
        for ids, of_each, is_cut in zip(encoded["input_ids"], types, cut, strict=True):
            if not ids or ids[0] not in self._opening:
                raise ConfigError(
                    f"{self._encoder.name}: its tokenizer puts no token such as [CLS] in front of "
                    f"{'two texts' if len(texts[0]) > 1 else 'a text'}, whose state could stand "
                    "for all of it"
                )
            yield TextSequence(array("i", ids), array("b", of_each), is_cut)
