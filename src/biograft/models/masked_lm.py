"""Masked language models: scores of the vocabulary at masked positions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

import biograft.models.knowledge  # noqa: F401 - so that transformers knows models with its layers
from biograft.errors import StoreError
from biograft.models.pretrained import load_masked_lm, max_input_tokens, quiet_transformers

_HEADS = ("cls", "lm_head", "predictions", "vocab_transform", "generator_predictions")
"""Names of the language modelling head, or its first module, in the classes of transformers."""


class MaskedLanguageModel:
    """An encoder with a language modelling head, and its tokenizer.

    Args:
        model: Masked language model of transformers.
        tokenizer: Its tokenizer.
        name: Name in messages.
    """

    def __init__(self, model: Any, tokenizer: Any, name: str) -> None:
        self.model, self.tokenizer, self.name = model.eval(), tokenizer, name
        self.mask = int(tokenizer.mask_token_id)
        self.max_length = max_input_tokens(model, tokenizer)
        self._head = next((getattr(model, key) for key in _HEADS if hasattr(model, key)), None)

    @classmethod
    def from_pretrained(
        cls, name_or_folder: str | Path, *, device: str | None = None
    ) -> MaskedLanguageModel:
        """Load a model from a folder or, by name, from the Hugging Face hub.

        A model without a trained head is refused.

        Args:
            name_or_folder: Folder, or name on the hub.
            device: Device of torch; default: a GPU where there is one.
        """
        loaded = load_masked_lm(name_or_folder)
        if loaded.new_head:
            raise StoreError(
                f"{name_or_folder}: an encoder without a language modelling head; expected a "
                "masked language model: pre-train one from it, or take another"
            )
        if loaded.tokenizer.mask_token_id is None:
            raise StoreError(
                f"{name_or_folder}: its tokenizer has no mask token; expected one such as [MASK]"
            )
        loaded.model.to(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        return cls(loaded.model, loaded.tokenizer, str(name_or_folder))

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        device: torch.device = next(self.model.parameters()).device
        return device

    @property
    def n_tokens(self) -> int:
        """The size of the vocabulary."""
        return int(self.model.config.vocab_size)

    def token_ids(self, text: str) -> list[int]:
        """Return the tokens of a text, with special tokens and without truncation."""
        with quiet_transformers():  # no warnings about long texts
            ids: list[int] = self.tokenizer(text)["input_ids"]
        return ids

    def texts(self, token_ids: Sequence[Sequence[int]]) -> list[str]:
        """Decode tokens, special tokens included."""
        texts: list[str] = self.tokenizer.batch_decode(
            [list(ids) for ids in token_ids], clean_up_tokenization_spaces=False
        )
        return texts

    def scores(
        self, token_ids: torch.Tensor, positions: torch.Tensor, **more: torch.Tensor
    ) -> torch.Tensor:
        """Compute the logits at some positions of texts: (texts, positions, tokens).

        The head runs at these positions only: its product with the vocabulary would cost more than
        all layers below it.

        Args:
            token_ids: Token ids: (texts, length).
            positions: Positions in each text: (texts, positions).
            more: Other inputs of the model: ``attention_mask`` of texts that are padded, entities.
        """
        inputs = {"input_ids": token_ids, "attention_mask": torch.ones_like(token_ids), **more}
        if self._head is None:
            return _at(self.model(**inputs).logits, positions)
        with _restricted_to(self._head, positions):
            logits = self.model(**inputs).logits
        return torch.as_tensor(logits)


@contextmanager
def _restricted_to(head: torch.nn.Module, positions: torch.Tensor) -> Iterator[None]:
    """Restrict the input of a head to the states at some positions."""
    handle = head.register_forward_pre_hook(
        lambda _, inputs: (_at(inputs[0], positions), *inputs[1:])
    )
    try:
        yield
    finally:
        handle.remove()


def _at(states: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Take the states (texts, tokens, width) at positions (texts, positions)."""
    return states.gather(1, positions.unsqueeze(-1).expand(-1, -1, states.shape[-1]))
