"""One text, or two, as a sequence whose opening token ([CLS]) stands for all of it."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from biograft.errors import ConfigError
from biograft.nn import TextEncoder

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
