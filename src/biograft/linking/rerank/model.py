"""What the cross-encoder reads: a mention marked in its text, and a candidate as the store has it.

The marks are characters that every vocabulary holds and medical text hardly ever has, so that
no encoder has to learn new tokens.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from biograft.errors import ConfigError, StoreError
from biograft.kb import KnowledgeBase
from biograft.linking.rankers import Context
from biograft.linking.rerank.config import RerankConfig
from biograft.nn import TextEncoder
from biograft.nn.batches import pad, token_batches
from biograft.nn.precision import computing_in

OPEN, CLOSE = "{", "}"
PARTS = " ; "
_BLANK = re.compile(r"\s")


def mark_mention(form: str, context: Context, n_characters: int, longest: int | None = None) -> str:
    """Show a mention between marks, with so much text on each side.

    Words that the window would cut are left out; the mention is whole unless it is longer than
    ``longest``. Where another form was looked up (the long form of an abbreviation, a part of a
    composite), it stands in brackets behind the mention. Without a known place the form stands
    alone.
    """
    text, start, end = context
    if not 0 <= start <= end <= len(text):
        raise ConfigError(
            f"context: expected a mention within the {len(text):,} characters of its text, found "
            f"one from {start:,} to {end:,}"
        )
    mention = text[start:end]
    if not mention.strip():
        return f"{OPEN} {form[:longest]} {CLOSE}"
    same = " ".join(mention.split()).casefold() == " ".join(form.split()).casefold()
    shown = mention[:longest] if same else f"{mention[:longest]} ( {form[:longest]} )"
    left, right = _before(text, start, n_characters), _after(text, end, n_characters)
    return f"{left} {OPEN} {shown} {CLOSE} {right}".strip()


def _before(text: str, start: int, n_characters: int) -> str:
    """Take what stands before a mention, from the first whole word on."""
    first = max(0, start - n_characters)
    window = text[first:start]
    blank = _BLANK.search(window)
    cuts_word = first > 0 and not text[first - 1].isspace()
    return window[blank.end() :] if cuts_word and blank else window


def _after(text: str, end: int, n_characters: int) -> str:
    """Take what stands behind a mention, up to the last whole word."""
    return _up_to_a_word(text[end:], n_characters)


def _up_to_a_word(text: str, n_characters: int) -> str:
    """Take the beginning of a text without cutting a word, where words have blanks between."""
    window = text[:n_characters]
    if len(text) <= n_characters or text[n_characters].isspace():
        return window
    blanks = [blank.start() for blank in _BLANK.finditer(window)]
    return window[: blanks[-1]] if blanks else window


class CandidateTexts:
    """Tells of a concept: its name, the name that was found, further names, types, definition.

    What tells most stands first, since what is too long for the encoder is cut from the end.
    """

    def __init__(self, kb: KnowledgeBase, config: RerankConfig) -> None:
        self._kb, self._config = kb, config
        self.tell = lru_cache(maxsize=1 << 16)(self._tell)

    def _tell(self, concept: str, found: str) -> str:
        """Give the text of a concept that was found by a name; what the store lacks is left out."""
        entry = self._kb[concept]
        names = {name.casefold(): name for name in (found, entry.name)}
        n_wanted = len(names) + self._config.n_synonyms
        for name in entry.names:
            if len(names) >= n_wanted:
                break
            names.setdefault(name.text.casefold(), name.text)
        own = entry.name.casefold()
        ordered = [names.pop(own), *names.values()]
        kinds = ", ".join(kind.label or kind.code for kind in entry.types)
        definition = _up_to_a_word(entry.definition, self._config.definition_characters)
        return PARTS.join(part for part in (*ordered, kinds, definition) if part)


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


ENCODER, HEAD = "encoder", "head.safetensors"
_DROPOUT = 0.1
_TOKENS_AT_ONCE = 8192
"""Tokens of a batch that is only scored, the padding counted."""

Floats = npt.NDArray[np.float64]


class CrossEncoder(nn.Module):
    """An encoder with a linear head, and a bias for the text that stands for no concept."""

    def __init__(self, encoder: TextEncoder, config: RerankConfig) -> None:
        super().__init__()
        self.encoder = encoder
        self.pairs = PairTokenizer(encoder, config.context_characters)
        self.model: nn.Module = encoder.model
        self.dropout = nn.Dropout(_DROPOUT)
        self.head = nn.Linear(encoder.dim, 1)
        self.nil_bias = nn.Parameter(torch.zeros(1))
        start = torch.Generator().manual_seed(config.training.seed)
        with torch.no_grad():
            self.head.weight.normal_(std=0.02, generator=start)
            self.head.bias.zero_()
        self.to(encoder.device)

    @classmethod
    def start(cls, config: RerankConfig) -> CrossEncoder:
        """Make a cross-encoder that has learnt nothing yet of an encoder."""
        encoder = TextEncoder.from_pretrained(
            config.encoder, pooling=config.pooling, max_length=config.max_length
        )
        return cls(encoder, config)

    def forward(self, batch: Mapping[str, Tensor], is_nil: Tensor) -> Tensor:
        """Score the pairs of a batch: (pairs,); ``is_nil`` marks those of no concept."""
        vectors = self.dropout(self.encoder.embed(batch))  # (pairs, dim)
        scores: Tensor = self.head(vectors)[:, 0].float()
        return scores + self.nil_bias * is_nil.to(scores.device)

    def score(
        self, pairs: Sequence[PairTokens], is_nil: npt.NDArray[np.bool_], precision: str = "auto"
    ) -> Floats:
        """Score pairs without learning, those of like length together: (pairs,)."""
        lengths = np.fromiter(map(len, pairs), np.int64, len(pairs))
        scores = np.zeros(len(pairs))
        training = self.training
        self.eval()
        try:
            with torch.inference_mode(), computing_in(precision, self.encoder.device):
                for rows in token_batches(lengths, _TOKENS_AT_ONCE):
                    batch = self.pairs.pad([pairs[row] for row in rows])
                    scores[rows] = self(batch, torch.from_numpy(is_nil[rows])).cpu().numpy()
        finally:
            self.train(training)
        if not np.isfinite(scores).all():
            raise StoreError(
                f"{self.encoder.name}: gives NaN or infinity for "
                f"{int((~np.isfinite(scores)).sum()):,} of {len(scores):,} pairs; its weights are "
                "damaged, train the re-ranker again"
            )
        return scores

    def save(self, folder: Path) -> None:
        """Write the encoder, as any other, and the head beside it."""
        self.encoder.save(folder / ENCODER)
        head = {**self.head.state_dict(), "nil_bias": self.nil_bias.detach()}
        save_file({name: value.cpu().contiguous() for name, value in head.items()}, folder / HEAD)

    @classmethod
    def load(cls, folder: Path, config: RerankConfig) -> CrossEncoder:
        """Load what ``save`` wrote."""
        model = cls(TextEncoder.from_pretrained(folder / ENCODER), config)
        try:
            head = load_file(folder / HEAD)
            bias = head.pop("nil_bias")
            model.head.load_state_dict(head)
        except (OSError, KeyError, RuntimeError, SafetensorError) as error:
            reason = " ".join(str(error).split())
            raise StoreError(
                f"{folder / HEAD}: damaged ({reason}); train the re-ranker again"
            ) from error
        model.nil_bias.data.copy_(bias)
        for name, value in (*model.head.named_parameters(), ("nil_bias", model.nil_bias)):
            if not torch.isfinite(value).all():
                raise StoreError(
                    f"{folder / HEAD}: holds NaN or infinity ({name}); train the re-ranker again"
                )
        return model
