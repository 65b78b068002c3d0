"""From the states of all tokens of a text to one vector."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from biograft.artifacts import new_folder
from biograft.errors import ConfigError, StoreError, shorten
from biograft.nn.batches import USUAL_LENGTH, pad, token_batches
from biograft.nn.knowledge.entity_finder import EntityFinder, is_told, limit_knowledge, make_finder
from biograft.nn.precision import computing_in
from biograft.nn.pretrained import (
    find_encoder,
    hash_encoder,
    load_parts,
    most_tokens,
    write_encoder,
)
from biograft.nn.settings import EncoderSettings, find_settings
from biograft.progress import Progress
from biograft.registry import Registry

Pooling = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""States (batch, tokens, dim) and mask (batch, tokens) in, vectors (batch, dim) out."""

POOLINGS: Registry[Pooling] = Registry(
    "pooling",
    {
        "cls": ("biograft.nn.encoder:pool_first", "the state of the first token (SapBERT)"),
        "mean": ("biograft.nn.encoder:pool_mean", "the mean of all tokens that are no padding"),
    },
)


def pool_first(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Take the state of the first token, before any pooler that the model may have."""
    return states[:, 0].float()  # (batch, dim)


def pool_mean(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Average the states of the tokens that are no padding; a text of no token gives zeros."""
    weights = mask.unsqueeze(-1).to(torch.float32)  # (batch, tokens, 1)
    return (states.float() * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)


Vectors = npt.NDArray[np.float32]


class TextEncoder:
    """A model with its tokenizer, and how a text becomes one vector."""

    def __init__(self, model: Any, tokenizer: Any, settings: EncoderSettings, name: str) -> None:
        self.model, self.tokenizer, self.settings, self.name = model, tokenizer, settings, name
        self.folder: Path | None = None
        """Where it lies on disk as it is, if it does; other files there may belong to it."""
        self._pool = POOLINGS.load(settings.pooling)
        most, least = most_tokens(model, tokenizer), tokenizer.num_special_tokens_to_add() + 1
        if not least <= settings.max_length <= most:
            raise ConfigError(
                f"max_length: expected {least} to {most} for {name}, found {settings.max_length}"
            )

    @classmethod
    def from_pretrained(
        cls,
        name_or_folder: str | Path,
        *,
        pooling: str | None = None,
        max_length: int | None = None,
        lower: bool | None = None,
        device: str | None = None,
    ) -> TextEncoder:
        """Load an encoder from a folder or, by name, from the hub of models.

        What is not given is read from the files beside the weights; failing those: mean pooling,
        the longest texts that the model takes, lower case where the tokenizer makes it anyhow.
        Without ``device`` the encoder lives on a GPU where there is one.
        """
        folder = find_encoder(name_or_folder)
        model, tokenizer = load_parts(folder)
        given = {"pooling": pooling, "max_length": max_length, "lower": lower}
        settings = EncoderSettings(
            **{
                "pooling": "mean",
                "max_length": most_tokens(model, tokenizer),
                "lower": _lowercases(tokenizer),
                **find_settings(folder),
                **{key: value for key, value in given.items() if value is not None},
            }
        )
        model.to(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        encoder = cls(model, tokenizer, settings, str(name_or_folder))
        encoder.folder = folder
        return encoder

    @property
    def pooling(self) -> str:
        """How states become one vector."""
        return self.settings.pooling

    @property
    def max_length(self) -> int:
        """How many tokens of a text are read."""
        return self.settings.max_length

    @property
    def lower(self) -> bool:
        """Whether texts are lowercased first."""
        return self.settings.lower

    @property
    def dim(self) -> int:
        """How many numbers a vector has."""
        return int(self.model.config.hidden_size)

    @property
    def device(self) -> torch.device:
        """Where the model lives now."""
        device: torch.device = next(self.model.parameters()).device
        return device

    def prepare(self, text: str) -> str:
        """Give a text as the tokenizer sees it: blanks squeezed, lowercased if so set."""
        squeezed = " ".join(text.split())
        return squeezed.lower() if self.lower else squeezed

    def tokenize(self, texts: Sequence[str]) -> dict[str, torch.Tensor]:
        """Make a batch of texts: ``input_ids`` and ``attention_mask``, as long as the longest."""
        return pad(self._token_ids(texts), self._filler)

    def embed(self, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Compute the vectors of a batch, as they are pooled; gradients flow."""
        inputs = self.tell({key: value.to(self.device) for key, value in batch.items()})
        # of an encoder-decoder, the half that reads
        config = self.model.config
        reader = self.model.get_encoder() if config.is_encoder_decoder else self.model
        states = reader(**inputs).last_hidden_state  # (batch, tokens, dim)
        return self._pool(states, inputs["attention_mask"])

    def tell(self, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Add which entities the texts of a batch name, for a model that must be told."""
        if self.finder is None:
            return inputs
        return inputs | self.finder.tell(inputs["input_ids"], inputs["attention_mask"])

    def limit_knowledge(self, share: float | None, n_neighbours: int | None) -> None:
        """Tell the model a share of what texts name, and fewer neighbours of each."""
        if not self.is_told:
            raise ConfigError(
                f"encoder.told_share, encoder.n_neighbours: {self.name} is told of no entities; "
                "leave them out"
            )
        limit_knowledge(self.model, share, n_neighbours)
        self.__dict__.pop("finder", None)

    @property
    def is_told(self) -> bool:
        """Whether the model must be told which entities a text names."""
        return is_told(self.model)

    @cached_property
    def finder(self) -> EntityFinder | None:
        """What finds the entities that the model must be told; none if it needs none."""
        return make_finder(self.model, self.tokenizer, self.prepare)

    def encode(
        self,
        texts: Sequence[str],
        *,
        batch_size: int = 64,
        precision: str = "auto",
        normalize: bool = True,
        progress: Progress | None = None,
    ) -> Vectors:
        """Compute one vector for each text, in the order given: (texts, dim).

        A batch has room for ``batch_size`` names of usual length: fewer texts where they are
        longer, more where they are shorter. ``normalize`` makes all vectors of length 1.
        """
        if batch_size < 1:
            raise ConfigError(f"batch_size: expected at least 1, found {batch_size}")
        token_ids = self._token_ids(texts)
        lengths = np.fromiter(map(len, token_ids), dtype=np.int64, count=len(token_ids))
        vectors = np.zeros((len(texts), self.dim), dtype=np.float32)
        n_done, n_tokens = 0, max(1, int(lengths.sum()))
        with self._reading(precision):
            for rows in token_batches(lengths, batch_size * USUAL_LENGTH):
                if lengths[rows[0]] == 0:
                    continue  # nothing to read: zeros; only tokenizers without special tokens
                batch = pad([token_ids[row] for row in rows], self._filler)
                vectors[rows] = self.embed(batch).float().cpu().numpy()
                if progress:
                    n_done += int(lengths[rows].sum())
                    progress.advance(len(rows), n_done / n_tokens)
        self._refuse_nonsense(vectors, texts)
        return _to_unit_length(vectors) if normalize else vectors

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write the encoder so that transformers and sentence-transformers load it too."""
        with new_folder(Path(folder), overwrite=overwrite) as work:
            write_encoder(work, self.model, self.tokenizer, self.settings)

    def fingerprint(self) -> str:
        """Compute the SHA-256 of weights, tokenizer and settings: equal ones, equal vectors."""
        return hash_encoder(self.model, self.tokenizer, self.settings)

    @property
    def _filler(self) -> int:
        return int(self.tokenizer.pad_token_id or 0)

    def _token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        if not texts:
            return []
        encoded = self.tokenizer(
            [self.prepare(text) for text in texts],
            truncation=True,
            max_length=self.max_length,
            return_attention_mask=False,
            return_token_type_ids=False,
        )
        ids: list[list[int]] = encoded["input_ids"]
        return ids

    @contextlib.contextmanager
    def _reading(self, precision: str) -> Iterator[None]:
        """Neither drop out nor keep gradients; one autocast for all batches casts weights once."""
        training = self.model.training
        self.model.eval()
        try:
            with torch.inference_mode(), computing_in(precision, self.device):
                yield
        finally:
            self.model.train(training)

    def _refuse_nonsense(self, vectors: Vectors, texts: Sequence[str]) -> None:
        faulty = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if len(faulty):
            raise StoreError(
                f"{self.name}: gives NaN or infinity for {len(faulty):,} of {len(texts):,} texts, "
                f"first {shorten(texts[faulty[0]])!r}; its weights are damaged, train it again"
            )


def _to_unit_length(vectors: Vectors) -> Vectors:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors /= np.maximum(norms, np.finfo(np.float32).tiny)
    return vectors


def _lowercases(tokenizer: Any) -> bool:
    """Whether a tokenizer lowercases by itself, so that doing it before changes nothing."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return bool(getattr(tokenizer, "do_lower_case", False))
    stated = json.dumps(json.loads(backend.to_str()).get("normalizer"))
    return '"lowercase": true' in stated or '"Lowercase"' in stated
