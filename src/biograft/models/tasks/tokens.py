"""Tokenisation for tasks: tokens with character offsets, tokens of words, sequences of texts."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from biograft.errors import ConfigError
from biograft.models import TextEncoder
from biograft.models.pretrained import quiet_transformers
from biograft.text.alignment import NONE, align_spans

Ints = npt.NDArray[np.int64]
_SPACES = ("▁", "Ġ")
"""The space as written by SentencePiece and byte-level BPE."""


@dataclass(frozen=True, slots=True)
class TextTokens:
    """The token ids of a text and their character offsets."""

    ids: list[int]
    offsets: Ints  # (tokens, 2)


class TaskTokenizer:
    """The fast tokenizer of an encoder, with character offsets and without special tokens."""

    def __init__(self, encoder: TextEncoder) -> None:
        if not getattr(encoder.tokenizer, "is_fast", False):
            raise ConfigError(
                f"{encoder.name}: its tokenizer gives no character offsets; convert it to a fast "
                "one (tokenizer.json)"
            )
        self._tokenizer, self._lower = encoder.tokenizer, encoder.lower
        self._words: dict[str, list[int]] = {}
        special = [int(i) for i in encoder.tokenizer.encode("")]
        opening = {encoder.tokenizer.cls_token_id, encoder.tokenizer.bos_token_id}
        n_before = int(bool(special) and special[0] in opening)
        self._before, self._after = special[:n_before], special[n_before:]
        self.room = encoder.max_length - len(special)
        """Tokens of text that fit into a sequence."""

    @property
    def n_before(self) -> int:
        """Number of special tokens before the text."""
        return len(self._before)

    def frame(self, ids: Sequence[int]) -> list[int]:
        """Add the special tokens around a sequence."""
        return [*self._before, *ids, *self._after]

    def read(self, texts: Sequence[str]) -> list[TextTokens]:
        """Tokenise texts without truncation."""
        if not texts:
            return []
        with quiet_transformers():  # no warnings about long texts
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

    def tokenize_word(self, word: str) -> list[int]:
        """Tokenise a word by itself, without a token for the space before it."""
        if word not in self._words:
            [tokens] = self.read([word])
            names = self._tokenizer.convert_ids_to_tokens(tokens.ids)
            ids = [i for i, name in zip(tokens.ids, names, strict=True) if name not in _SPACES]
            self._words[word] = ids or tokens.ids
        return self._words[word]

    def _lowered(self, text: str) -> str:
        """Lowercase for an uncased encoder, character by character so that offsets stay."""
        if not self._lower:
            return text
        return "".join(low if len(low := char.lower()) == 1 else char for char in text)


def tokens_of_words(
    text: str, words: Ints, tokens: TextTokens, tokenizer: TaskTokenizer
) -> list[list[int]]:
    """Return the tokens of each word, possibly none; ``words`` (words, 2) are in order.

    Words that share a token are tokenised one by one.

    Args:
        text: A text.
        words: Start and end of each word, in order: (words, 2).
        tokens: Tokens of the text, with offsets.
        tokenizer: Tokenizer of the encoder.
    """
    touched = align_spans(words, tokens.offsets)  # first and last word of each token
    shared = np.zeros(len(words), bool)
    for first, last in touched[touched[:, 0] < touched[:, 1]].tolist():
        shared[first : last + 1] = True
    of_words: list[list[int]] = [[] for _ in words]
    for word, token in zip(touched[:, 0].tolist(), tokens.ids, strict=True):
        if word != NONE and not shared[word]:
            of_words[word].append(token)
    for word in np.flatnonzero(shared).tolist():
        start, end = words[word].tolist()
        of_words[word] = tokenizer.tokenize_word(text[start:end])
    return of_words


MIN_ROOM = 8
"""The least number of text tokens that an encoder must take."""
_BATCH_SIZE = 2000


@dataclass(frozen=True, slots=True)
class TextSequence:
    """One or two texts with the special tokens of the encoder's tokenizer."""

    tokens: array[int]
    segments: array[int]
    """``token_type_ids``; empty where the encoder has none."""
    cut: bool
    """Whether the texts were truncated."""
    labels: tuple[int, ...] = ()
    """Indices of its classes, for training."""

    @property
    def positions(self) -> tuple[int, ...]:
        """The first token ([CLS])."""
        return (0,)


class SequenceTokenizer:
    """Tokenises single texts and pairs of texts; the longer text of a pair is truncated first."""

    def __init__(self, encoder: TextEncoder) -> None:
        self._encoder, tokenizer = encoder, encoder.tokenizer
        self._opening = {tokenizer.cls_token_id, tokenizer.bos_token_id}
        room = encoder.max_length - tokenizer.num_special_tokens_to_add(pair=True)
        if room < MIN_ROOM:
            raise ConfigError(
                f"max_length: leaves {room} tokens for two texts; expected at least {MIN_ROOM}"
            )
        self._has_types = int(getattr(encoder.model.config, "type_vocab_size", 0) or 0) > 1

    def read(self, texts: Sequence[tuple[str, ...]]) -> list[TextSequence]:
        """Return the sequence of each text or pair of texts."""
        sequences: dict[int, TextSequence] = {}
        for n_texts in (1, 2):
            rows = [row for row, together in enumerate(texts) if len(together) == n_texts]
            for start in range(0, len(rows), _BATCH_SIZE):
                batch = rows[start : start + _BATCH_SIZE]
                sequences.update(zip(batch, self._read([texts[row] for row in batch]), strict=True))
        return [sequences[row] for row in range(len(texts))]

    def count_cut(self, sequences: Iterable[TextSequence]) -> Counter[str]:
        """Count truncated sequences, in the form of ``TaskModel.training_items``."""
        n_cut = sum(sequence.cut for sequence in sequences)
        limit = self._encoder.max_length
        return Counter({f"texts cut to {limit} tokens": n_cut} if n_cut else {})

    def _read(self, texts: Sequence[tuple[str, ...]]) -> Iterable[TextSequence]:
        """Return the sequences of texts that are all single, or all pairs."""
        encoded: Any = self._encoder.tokenizer(
            *([self._encoder.prepare(text) for text in side] for side in zip(*texts, strict=True)),
            truncation="longest_first",
            max_length=self._encoder.max_length,
            return_attention_mask=False,
            return_token_type_ids=self._has_types,
        )
        types = encoded["token_type_ids"] if self._has_types else [()] * len(texts)
        # slow tokenizers do not report truncation
        cut = [bool(e.overflowing) for e in encoded.encodings or ()] or [False] * len(texts)
        for ids, segments, is_cut in zip(encoded["input_ids"], types, cut, strict=True):
            if not ids or ids[0] not in self._opening:
                raise ConfigError(
                    f"{self._encoder.name}: its tokenizer puts no [CLS] token before "
                    f"{'two texts' if len(texts[0]) > 1 else 'a text'}; expected one for the "
                    "head to read"
                )
            yield TextSequence(array("i", ids), array("b", segments), is_cut)
