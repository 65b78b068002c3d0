"""A masked language model from a folder: which tokens it expects at masked places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from biograft.errors import StoreError
from biograft.nn.pretrained import load_masked_lm, most_tokens, quiet_transformers

_HEADS = ("cls", "lm_head", "predictions", "vocab_transform", "generator_predictions")
"""What the classes of transformers call the (first module of the) head that predicts tokens."""


class MaskedLanguageModel:
    """A model with its head that predicts tokens, and its tokenizer."""

    def __init__(self, model: Any, tokenizer: Any, name: str) -> None:
        self.model, self.tokenizer, self.name = model.eval(), tokenizer, name
        self.mask = int(tokenizer.mask_token_id)
        self.max_length = most_tokens(model, tokenizer)
        self._head = next((getattr(model, key) for key in _HEADS if hasattr(model, key)), None)

    @classmethod
    def from_pretrained(
        cls, name_or_folder: str | Path, *, device: str | None = None
    ) -> MaskedLanguageModel:
        """Load a model from a folder or, by name, from the hub of models.

        One without a head that was trained is refused. Without ``device`` the model lives on a
        GPU where there is one.
        """
        loaded = load_masked_lm(name_or_folder)
        if loaded.new_head:
            raise StoreError(
                f"{name_or_folder}: an encoder without the head that predicts tokens; expected a "
                "masked language model: pre-train one from it, or take another"
            )
        if loaded.tokenizer.mask_token_id is None:
            raise StoreError(
                f"{name_or_folder}: its tokenizer has no token for what is masked; expected one "
                "such as [MASK]"
            )
        loaded.model.to(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        return cls(loaded.model, loaded.tokenizer, str(name_or_folder))

    @property
    def device(self) -> torch.device:
        """Where the model lives now."""
        device: torch.device = next(self.model.parameters()).device
        return device

    @property
    def n_tokens(self) -> int:
        """How many tokens there are to choose from."""
        return int(self.model.config.vocab_size)

    def token_ids(self, text: str) -> list[int]:
        """Make the tokens of a text, special ones included; nothing is cut off."""
        with quiet_transformers():  # that a text is longer than the model takes is ours to say
            ids: list[int] = self.tokenizer(text)["input_ids"]
        return ids

    def texts(self, token_ids: Sequence[Sequence[int]]) -> list[str]:
        """Write tokens out, special ones too."""
        texts: list[str] = self.tokenizer.batch_decode(
            [list(ids) for ids in token_ids], clean_up_tokenization_spaces=False
        )
        return texts

    def scores(self, token_ids: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """Score every token at some places of texts of one length: (texts, places, tokens).

        The head is computed at these places only: its product with the vocabulary would cost more
        than all layers below it.
        """
        mask = torch.ones_like(token_ids)
        if self._head is None:
            logits = self.model(input_ids=token_ids, attention_mask=mask).logits
            return _at(logits, places)
        with _reading_only(self._head, places):
            logits = self.model(input_ids=token_ids, attention_mask=mask).logits
        return torch.as_tensor(logits)


@contextmanager
def _reading_only(head: torch.nn.Module, places: torch.Tensor) -> Iterator[None]:
    """Let a head see the states at some places only."""
    handle = head.register_forward_pre_hook(lambda _, inputs: (_at(inputs[0], places), *inputs[1:]))
    try:
        yield
    finally:
        handle.remove()


def _at(states: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Take the states (texts, tokens, width) at places (texts, places)."""
    return states.gather(1, places.unsqueeze(-1).expand(-1, -1, states.shape[-1]))
