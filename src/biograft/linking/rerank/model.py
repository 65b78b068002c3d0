"""The cross-encoder, and its input: a mention marked in its context, and the text of a candidate.

The markers are characters that every vocabulary has and medical text hardly ever uses, so that no
encoder has to learn new tokens.
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
from biograft.linking.queries import Context
from biograft.linking.rerank.config import RerankConfig
from biograft.models import TextEncoder
from biograft.models.batches import pad, token_batches
from biograft.models.precision import autocast_in

OPEN, CLOSE = "{", "}"
PARTS = " ; "
_WHITESPACE = re.compile(r"\s")


def mark_mention(form: str, context: Context, n_characters: int, longest: int | None = None) -> str:
    """Mark a mention in a window of its context, ``n_characters`` on each side.

    Words that the window would cut are dropped; a mention longer than ``longest`` is truncated.
    If another form was looked up (the long form of an abbreviation, a part of a composite), it
    follows the mention in brackets. Without a context the form stands alone.
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
    marked = mention[:longest] if same else f"{mention[:longest]} ( {form[:longest]} )"
    left, right = _before(text, start, n_characters), _after(text, end, n_characters)
    return f"{left} {OPEN} {marked} {CLOSE} {right}".strip()


def _before(text: str, start: int, n_characters: int) -> str:
    """Return the text before a mention, from the first whole word on."""
    first = max(0, start - n_characters)
    window = text[first:start]
    space = _WHITESPACE.search(window)
    cuts_word = first > 0 and not text[first - 1].isspace()
    return window[space.end() :] if cuts_word and space else window


def _after(text: str, end: int, n_characters: int) -> str:
    """Return the text after a mention, up to the last whole word."""
    return _truncate_at_word(text[end:], n_characters)


def _truncate_at_word(text: str, n_characters: int) -> str:
    """Truncate a text without cutting a word, if words are separated by whitespace."""
    window = text[:n_characters]
    if len(text) <= n_characters or text[n_characters].isspace():
        return window
    spaces = [space.start() for space in _WHITESPACE.finditer(window)]
    return window[: spaces[-1]] if spaces else window


class CandidateTexts:
    """Text of a concept: its name, the matched name, further names, types, definition.

    The most informative parts come first, since long texts are truncated at the end.
    """

    def __init__(self, kb: KnowledgeBase, config: RerankConfig) -> None:
        self._kb, self._config = kb, config
        self.describe = lru_cache(maxsize=1 << 16)(self._describe)

    def _describe(self, concept: str, match: str) -> str:
        """Return the text of a concept that was found by the name ``match``."""
        entry = self._kb[concept]
        names = {name.casefold(): name for name in (match, entry.name)}
        n_names = len(names) + self._config.n_synonyms
        for name in entry.names:
            if len(names) >= n_names:
                break
            names.setdefault(name.text.casefold(), name.text)
        preferred = entry.name.casefold()
        ordered = [names.pop(preferred), *names.values()]
        types = ", ".join(type_.label or type_.code for type_ in entry.types)
        definition = _truncate_at_word(entry.definition, self._config.definition_characters)
        return PARTS.join(part for part in (*ordered, types, definition) if part)


_CONTEXT_RATIO = 0.6
"""Maximum fraction of a pair's tokens for the mention and its context."""
_MAX_COUNTED = 8
"""Tokens are counted up to this multiple of the room, so that long texts cost little."""


@dataclass(frozen=True, slots=True)
class CandidatePair:
    """The tokens of a mention and a candidate."""

    ids: list[int]
    types: list[int] | None
    """Token type ids, for encoders that use them."""

    def __len__(self) -> int:
        return len(self.ids)


class CandidatePairTokenizer:
    """Tokenizes pairs of mentions and candidates for an encoder."""

    def __init__(self, encoder: TextEncoder, context_characters: int) -> None:
        self.encoder, self.context_characters = encoder, context_characters
        room = encoder.max_length - encoder.tokenizer.num_special_tokens_to_add(pair=True)
        self.context_room = int(_CONTEXT_RATIO * room)
        self._has_types = int(getattr(encoder.model.config, "type_vocab_size", 0) or 0) > 1

    def mark_mentions(self, mentions: Sequence[tuple[str, Context]]) -> list[str]:
        """Return marked mentions with as much of their context as there is room for.

        If the mention alone is too long, it is truncated.
        """
        windows: list[tuple[int, int | None]] = [(self.context_characters, None)] * len(mentions)
        pairs = zip(mentions, windows, strict=True)
        texts = [mark_mention(*mention, *window) for mention, window in pairs]
        pending = list(range(len(mentions)))
        while pending:
            counts = zip(pending, self._count([texts[row] for row in pending]), strict=True)
            long = [(row, n_tokens) for row, n_tokens in counts if n_tokens > self.context_room]
            for row, n_tokens in long:
                ratio = self.context_room / n_tokens
                windows[row] = _narrow(windows[row], mentions[row], ratio)
                texts[row] = mark_mention(*mentions[row], *windows[row])
            pending = [row for row, _ in long if windows[row] != (0, 0)]
        return texts

    def tokenize(self, left: Sequence[str], right: Sequence[str]) -> list[CandidatePair]:
        """Tokenize pairs; long ones are truncated at the end of the right text."""
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
        return [CandidatePair(*pair) for pair in zip(encoded["input_ids"], types, strict=True)]

    def pad(self, pairs: Sequence[CandidatePair]) -> Mapping[str, Tensor]:
        """Return the padded tensors of a batch."""
        batch = pad([pair.ids for pair in pairs], int(self.encoder.tokenizer.pad_token_id or 0))
        if self._has_types:
            batch["token_type_ids"] = pad([pair.types or [] for pair in pairs], 0)["input_ids"]
        return batch

    def _count(self, texts: Sequence[str]) -> list[int]:
        encoded = self.encoder.tokenizer(
            [self.encoder.prepare(text) for text in texts],
            add_special_tokens=False,
            truncation=True,
            max_length=_MAX_COUNTED * self.context_room,
            return_attention_mask=False,
            return_token_type_ids=False,
        )
        return [len(ids) for ids in encoded["input_ids"]]


def _narrow(
    window: tuple[int, int | None], mention: tuple[str, Context], ratio: float
) -> tuple[int, int | None]:
    """Narrow the context first; when there is none left, shorten the mention."""
    n_characters, longest = window
    if n_characters:
        return int(n_characters * ratio), longest
    form, context = mention
    if longest is None:
        longest = max(len(form), context.end - context.start)
    return 0, int(longest * ratio)


ENCODER, HEAD = "encoder", "head.safetensors"
_DROPOUT = 0.1
_TOKENS_AT_ONCE = 8192
"""Tokens of a batch in inference, including padding."""

Floats = npt.NDArray[np.float64]


class CrossEncoder(nn.Module):
    """An encoder with a linear head that scores pairs, and a bias for NIL."""

    def __init__(self, encoder: TextEncoder, config: RerankConfig) -> None:
        super().__init__()
        self.encoder = encoder
        self.pairs = CandidatePairTokenizer(encoder, config.context_characters)
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
        """Build an untrained cross-encoder from the configured encoder."""
        encoder = TextEncoder.from_pretrained(
            config.encoder, pooling=config.pooling, max_length=config.max_length
        )
        return cls(encoder, config)

    def forward(self, batch: Mapping[str, Tensor], is_nil: Tensor) -> Tensor:
        """Score the pairs of a batch: (pairs,); ``is_nil`` marks the pairs of NIL."""
        vectors = self.dropout(self.encoder.embed(batch))  # (pairs, dim)
        scores: Tensor = self.head(vectors)[:, 0].float()
        return scores + self.nil_bias * is_nil.to(scores.device)

    def score(
        self, pairs: Sequence[CandidatePair], is_nil: npt.NDArray[np.bool_], precision: str = "auto"
    ) -> Floats:
        """Score pairs in inference mode, in batches of similar length: (pairs,)."""
        lengths = np.fromiter(map(len, pairs), np.int64, len(pairs))
        scores = np.zeros(len(pairs))
        training = self.training
        self.eval()
        try:
            with torch.inference_mode(), autocast_in(precision, self.encoder.device):
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
        """Write the encoder, and the head beside it."""
        self.encoder.save_pretrained(folder / ENCODER)
        head = {**self.head.state_dict(), "nil_bias": self.nil_bias.detach()}
        save_file({name: value.cpu().contiguous() for name, value in head.items()}, folder / HEAD)

    @classmethod
    def load(cls, folder: Path, config: RerankConfig) -> CrossEncoder:
        """Load a cross-encoder from the folder that ``save`` wrote."""
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
