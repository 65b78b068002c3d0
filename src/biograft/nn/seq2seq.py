"""Cut a text that is too long for a model round its marked mention, token by token."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForSeq2SeqLM

from biograft.artifacts import new_folder
from biograft.corpus.mention_text import END, START, share_room
from biograft.errors import ConfigError, StoreError
from biograft.nn.pretrained import (
    describe_tokenizer,
    find_encoder,
    hash_model,
    load_config,
    load_model,
    quiet_transformers,
    refuse_missing,
)

_MARKED = re.compile(rf"(?<!\S){START}(?!\S).*(?<!\S){END}(?!\S)", re.DOTALL)


def cut_round_mention(
    text: str, tokens: Sequence[int], offsets: Sequence[tuple[int, int]], room: int
) -> list[int]:
    """Keep so many tokens: the marked mention, and those nearest to it on either side.

    Of a mention that is too long by itself the first and the last tokens stay, so that both its
    marks do; of a text without one the first tokens stay.
    """
    marked = _MARKED.search(text)
    if marked is None:
        return list(tokens[:room])
    inside = [
        place
        for place, (start, end) in enumerate(offsets)
        if start < marked.end() and end > marked.start()
    ]
    first, last = inside[0], inside[-1] + 1
    if last - first > room:
        return [*tokens[first : first + room - room // 2], *tokens[last - room // 2 : last]]
    before, after = share_room(first, len(tokens) - last, room - (last - first))
    return list(tokens[first - before : last + after])


_CHUNK = 16_384
"""How many texts are tokenised at once: what the tokenizer gives for each is large."""
_DROPOUTS = ("dropout", "attention_dropout", "dropout_rate")
_NO_LIMIT = 100_000
_USUAL_LIMIT = 512
"""What models without numbered positions (T5) are trained to read."""
_CONFIG_KEYS = ("model_type", "encoder_attention_heads", "num_heads", "activation_function",
            "scale_embedding")  # fmt: skip


class Namer:
    """A model that reads a text and writes a name.

    ``start`` is what the decoder begins with, ``end`` what a name ends with. It reads at most
    ``max_source`` tokens and writes at most ``max_target``, the prompt and ``start`` included.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        name: str,
        *,
        max_source: int | None = None,
        max_target: int | None = None,
    ) -> None:
        if not getattr(tokenizer, "is_fast", False):
            raise StoreError(
                f"{name}: its tokenizer ({type(tokenizer).__name__}) has no fast form; expected "
                "a tokenizer.json beside the weights"
            )
        self.model, self.tokenizer, self.name = model, tokenizer, name
        self.start = self._special("decoder_start_token_id")
        self.end = self._special("eos_token_id")
        self.padding = self._special("pad_token_id")
        self.max_source = self._limit("max_source", max_source, tokenizer.model_max_length)
        self.max_target = self._limit("max_target", max_target, _NO_LIMIT)
        self._before, self._after = _round(tokenizer)
        _force_nothing(model)

    @classmethod
    def from_pretrained(
        cls,
        name_or_folder: str | Path,
        *,
        max_source: int | None = None,
        max_target: int | None = None,
        dropout: float | None = None,
        device: str | None = None,
    ) -> Namer:
        """Load a model from a folder or, by name, from the hub of models.

        ``dropout``, where given, replaces the model's own, also in attention. Without ``device``
        the model lives on a GPU where there is one.
        """
        folder = find_encoder(name_or_folder)
        config = _read_config(folder)
        if dropout is not None:
            for key in _DROPOUTS:
                if hasattr(config, key):
                    setattr(config, key, dropout)
        model, tokenizer, missing = load_model(AutoModelForSeq2SeqLM, folder, config=config)
        refuse_missing(folder, missing)
        model.to(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        return cls(model, tokenizer, str(folder), max_source=max_source, max_target=max_target)

    @property
    def device(self) -> torch.device:
        """Where the model lives now."""
        device: torch.device = next(self.model.parameters()).device
        return device

    def source_tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Give the tokens of texts to read, with the special ones that the tokenizer puts round.

        Of a text that is too long the tokens nearest its marked mention stay.
        """
        room = self.max_source - len(self._before) - len(self._after)
        found = []
        for text, tokens in zip(texts, self._tokens(texts), strict=True):
            kept = tokens if len(tokens) <= room else self._cut(text, room)
            found.append([*self._before, *kept, *self._after])
        return found

    def prompt_tokens(self, prompt: str) -> list[int]:
        """Give the tokens of what the decoder is given; none for an empty prompt."""
        return self._tokens([prompt])[0]

    def name_tokens(self, name: str) -> list[int]:
        """Give the tokens of a name, without its end."""
        return self._tokens([name])[0]

    def prompts_tokens(self, prompts: Sequence[str]) -> list[list[int]]:
        """Give the tokens of many prompts."""
        return self._tokens(prompts)

    def names_tokens(self, names: Sequence[str]) -> list[list[int]]:
        """Give the tokens of many names, without their ends."""
        return self._tokens(names)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write model and tokenizer as transformers loads them."""
        with new_folder(Path(folder), overwrite=overwrite) as work, quiet_transformers():
            self.model.save_pretrained(work)
            self.tokenizer.save_pretrained(work)

    def fingerprint(self) -> str:
        """Compute the SHA-256 of all that decides what is written: equal ones, equal names."""
        config = self.model.config
        described = {
            "config": {key: str(getattr(config, key, None)) for key in _CONFIG_KEYS},
            "tokenizer": describe_tokenizer(self.tokenizer),
            "tokens": [self.start, self.end, self.padding],
            "limits": [self.max_source, self.max_target],
        }
        return hash_model(described, self.model)

    def _tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokenise texts as they stand within others: after a blank, without special tokens."""
        backend = self.tokenizer.backend_tokenizer
        backend.no_truncation()  # what an earlier call of the tokenizer may have left
        backend.no_padding()
        found: list[list[int]] = []
        for first in range(0, len(texts), _CHUNK):
            written = [f" {text}" if text else "" for text in texts[first : first + _CHUNK]]
            made = backend.encode_batch_fast(written, add_special_tokens=False)
            found += [encoding.ids for encoding in made]
        return found

    def _cut(self, text: str, room: int) -> list[int]:
        """Tokenise a text that is too long, with the places of its tokens, and cut it."""
        written = f" {text}"
        encoding = self.tokenizer.backend_tokenizer.encode(written, add_special_tokens=False)
        return cut_round_mention(written, encoding.ids, encoding.offsets, room)

    def _special(self, key: str) -> int:
        """Find a special token where models tell it."""
        for told in (self.model.config, getattr(self.model, "generation_config", None)):
            found = getattr(told, key, None)
            if isinstance(found, int):
                return found
        raise StoreError(f"{self.name}: its config.json lacks {key}; expected a number")

    def _limit(self, name: str, given: int | None, told: int) -> int:
        """Give how many tokens one side takes: what is given, within what the model can."""
        positions = int(getattr(self.model.config, "max_position_embeddings", _NO_LIMIT))
        limits = [n for n in (positions, int(told)) if 0 < n < _NO_LIMIT]
        most = min(limits, default=None)
        if given is None:
            return most or _USUAL_LIMIT
        if not 8 <= given <= (most or given):
            raise ConfigError(
                f"{name}: expected 8 to {most or 'any number'} for {self.name}, found {given}"
            )
        return given


def _read_config(folder: Path) -> Any:
    """Read what model a folder holds; one that does not both read and write is refused."""
    config = load_config(folder)
    if not config.is_encoder_decoder:
        raise StoreError(
            f"{folder}: a {config.model_type} either reads or writes; expected a model that does "
            "both, such as BART or T5"
        )
    return config


def _round(tokenizer: Any) -> tuple[list[int], list[int]]:
    """Give the special tokens that a tokenizer puts before and after a text."""
    encoding = tokenizer.backend_tokenizer.encode(" a", add_special_tokens=True)
    ordinary = [place for place, special in enumerate(encoding.special_tokens_mask) if not special]
    return encoding.ids[: ordinary[0]], encoding.ids[ordinary[-1] + 1 :]


def _force_nothing(model: Any) -> None:
    """Let no token be forced: what may be written is for a trie of names to say."""
    for told in (model.config, getattr(model, "generation_config", None)):
        for key in ("forced_bos_token_id", "forced_eos_token_id"):
            if getattr(told, key, None) is not None:
                setattr(told, key, None)
