"""Pairs of texts as the tokens of a cross-encoder; a mention is never cut off by its context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from biograft.linking.rankers import Context
from biograft.linking.rerank.rendering import mark_mention
from biograft.nn import TextEncoder
from biograft.nn.batching import pad

_CONTEXT_SHARE = 0.6
"""How much of the room a mention with its context takes at most; the candidate has the rest."""
_AT_MOST = 8
"""Counting stops at so many times the room, so that endless texts are counted at once."""


@dataclass(frozen=True, slots=True)
class PairTokens:
    """The tokens of one pair."""

    ids: list[int]
    types: list[int] | None
    """Which of the two texts each token is of, for encoders that read that."""

    def __len__(self) -> int:
        return len(self.ids)


class PairTokenizer:
    """Brings mentions and candidates to what an encoder reads."""

    def __init__(self, encoder: TextEncoder, context_characters: int) -> None:
        self.encoder, self.context_characters = encoder, context_characters
        room = encoder.max_length - encoder.tokenizer.num_special_tokens_to_add(pair=True)
        self.context_room = int(_CONTEXT_SHARE * room)
        self._has_types = int(getattr(encoder.model.config, "type_vocab_size", 0) or 0) > 1

    def show_mentions(self, asked: Sequence[tuple[str, Context]]) -> list[str]:
        """Give mentions with as much of their context as there is room for.

        Where even the mention alone is too long, its beginning is shown.
        """
        windows: list[tuple[int, int | None]] = [(self.context_characters, None)] * len(asked)
        shown = [self._show(*each) for each in zip(asked, windows, strict=True)]
        open_ = list(range(len(asked)))
        while open_:
            counted = zip(open_, self._count([shown[row] for row in open_]), strict=True)
            long = [(row, n_tokens) for row, n_tokens in counted if n_tokens > self.context_room]
            for row, n_tokens in long:
                share = self.context_room / n_tokens
                windows[row] = _narrow(windows[row], asked[row], share)
                shown[row] = self._show(asked[row], windows[row])
            open_ = [row for row, _ in long if windows[row] != (0, 0)]
        return shown

    def tokenize(self, left: Sequence[str], right: Sequence[str]) -> list[PairTokens]:
        """Make the tokens of pairs; what is too long is cut from the end of the right text."""
        if not left:
            return []
        encoded = self.encoder.tokenizer(
            [self.encoder.prepare(text) for text in left],
            [self.encoder.prepare(text) for text in right],
            truncation="only_second",
            max_length=self.encoder.max_length,
            return_attention_mask=False,
            return_token_type_ids=self._has_types,
        )
        types = encoded["token_type_ids"] if self._has_types else [None] * len(left)
        return [PairTokens(*each) for each in zip(encoded["input_ids"], types, strict=True)]

    def pad(self, pairs: Sequence[PairTokens]) -> Mapping[str, Tensor]:
        """Make the tensors of a batch, each pair filled up to the longest."""
        batch = pad([pair.ids for pair in pairs], int(self.encoder.tokenizer.pad_token_id or 0))
        if self._has_types:
            batch["token_type_ids"] = pad([pair.types or [] for pair in pairs], 0)["input_ids"]
        return batch

    def _show(self, asked: tuple[str, Context], window: tuple[int, int | None]) -> str:
        return mark_mention(*asked, *window)

    def _count(self, texts: Sequence[str]) -> list[int]:
        encoded = self.encoder.tokenizer(
            [self.encoder.prepare(text) for text in texts],
            add_special_tokens=False,
            truncation=True,
            max_length=_AT_MOST * self.context_room,
            return_attention_mask=False,
            return_token_type_ids=False,
        )
        return [len(ids) for ids in encoded["input_ids"]]


def _narrow(
    window: tuple[int, int | None], asked: tuple[str, Context], share: float
) -> tuple[int, int | None]:
    """Narrow the context first; when there is none left, shorten the mention."""
    n_characters, longest = window
    if n_characters:
        return int(n_characters * share), longest
    form, context = asked
    if longest is None:
        longest = max(len(form), context.end - context.start)
    return 0, int(longest * share)
