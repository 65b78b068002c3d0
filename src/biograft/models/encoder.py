"""Text encoders: texts to vectors, with a transformers model, a tokenizer and a pooling.

The model is an encoder (BERT, XLM-R, DeBERTa, ModernBERT), the encoder of an encoder-decoder, or a
decoder (Qwen3), whose usual pooling is that of the last token.
"""

from __future__ import annotations

import contextlib
import hashlib
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
from biograft.models.adapters import LoraSettings, add_adapters
from biograft.models.batches import USUAL_LENGTH, pad, token_batches
from biograft.models.knowledge.entity_finder import EntityMentions, entity_inputs, make_finder
from biograft.models.openvino import ENGINES, OpenVinoModel
from biograft.models.precision import autocast_in
from biograft.models.pretrained import (
    find_encoder,
    hash_encoder,
    load_parts,
    max_input_tokens,
    write_encoder,
    write_towers,
)
from biograft.models.settings import (
    PROMPT_NAMES,
    EncoderSettings,
    choose_settings,
    prepare_text,
    read_towers,
)
from biograft.progress import Progress
from biograft.registry import Registry

Pooling = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""From states (batch, tokens, dim) and mask (batch, tokens) to vectors (batch, dim)."""

POOLINGS: Registry[Pooling] = Registry(
    "pooling",
    {
        "cls": ("encoder:pool_first", "the state of the first token (SapBERT)"),
        "mean": ("encoder:pool_mean", "the mean of all tokens"),
        "mean_sqrt_len_tokens": ("encoder:pool_scaled", "their sum by the root of their number"),
        "weightedmean": ("encoder:pool_weighted", "the mean weighted by position (SGPT)"),
        "max": ("encoder:pool_max", "the maximum of each dimension"),
        "lasttoken": ("encoder:pool_last", "the state of the last token (decoders)"),
    },
    group="biograft.poolings",
    home="biograft.models",
)
"""Poolings by the names that sentence-transformers has for them. Masks are 0 at padding, and at
prompts that are not pooled."""


def pool_first(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Take the state of the first token, without the pooler of the model.

    Args:
        states: States of the tokens: (batch, tokens, dim).
        mask: 1 at the tokens that count: (batch, tokens).
    """
    return _states_at(states, mask.int().argmax(1))


def pool_last(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Take the state of the last token.

    Args:
        states: States of the tokens: (batch, tokens, dim).
        mask: 1 at the tokens that count: (batch, tokens).
    """
    return _states_at(states, mask.shape[1] - 1 - mask.int().flip(1).argmax(1))


def _states_at(states: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    return states[torch.arange(len(states), device=states.device), positions].float()


def pool_mean(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Average the states of all tokens; a text without tokens gives zeros.

    Args:
        states: States of the tokens: (batch, tokens, dim).
        mask: 1 at the tokens that count: (batch, tokens).
    """
    weights = mask.unsqueeze(-1).float()  # (batch, tokens, 1)
    return (states.float() * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)


def pool_scaled(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Divide the sum of the states of all tokens by the root of their number.

    Args:
        states: States of the tokens: (batch, tokens, dim).
        mask: 1 at the tokens that count: (batch, tokens).
    """
    return pool_mean(states, mask) * mask.sum(1, keepdim=True).float().sqrt()


def pool_weighted(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Average the states of all tokens, each weighted by its position, from 1.

    Args:
        states: States of the tokens: (batch, tokens, dim).
        mask: 1 at the tokens that count: (batch, tokens).
    """
    positions = torch.arange(1, mask.shape[1] + 1, device=mask.device)
    weights = (mask * positions).unsqueeze(-1).float()  # (batch, tokens, 1)
    return (states.float() * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)


def pool_max(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Take the maximum of each dimension over all tokens.

    Args:
        states: States of the tokens: (batch, tokens, dim).
        mask: 1 at the tokens that count: (batch, tokens).
    """
    lowest = torch.finfo(torch.float32).min
    return states.float().masked_fill(mask.unsqueeze(-1) == 0, lowest).amax(dim=1)


Vectors = npt.NDArray[np.float32]


class TextEncoder:
    """A text encoder: a transformers model with its tokenizer and pooling.

    Args:
        model: Model of transformers that returns states.
        tokenizer: Its tokenizer.
        settings: Pooling, maximum length, lowercasing, prompts.
        name: Name in manifests and messages.

    >>> encoder = TextEncoder.from_pretrained("ENCODER")  # doctest: +SKIP
    >>> encoder.encode(["heart attack", "myocardial infarction"])  # doctest: +SKIP
    """

    def __init__(self, model: Any, tokenizer: Any, settings: EncoderSettings, name: str) -> None:
        self.model, self.tokenizer, self.settings, self.name = model, tokenizer, settings, name
        self.folder: Path | None = None
        """The folder it was loaded from, if any."""
        self.engine = "torch"
        """Engine of ``encode``: one of ``models.openvino.ENGINES``."""
        self.query: TextEncoder | None = None
        """The encoder of what is searched for, if it is another one (two towers)."""
        self.origins = dict.fromkeys(settings.to_json(), "given")
        """Origin of each setting: ``given``, ``files``, ``known of FAMILY``, ``default``."""
        self._pool = POOLINGS.load(settings.pooling)
        shortest = tokenizer.num_special_tokens_to_add() + 1
        longest = max_input_tokens(model, tokenizer)
        if not shortest <= settings.max_length <= longest:
            raise ConfigError(
                f"max_length: expected {shortest} to {longest} for {name}, "
                f"found {settings.max_length}"
            )

    def __repr__(self) -> str:
        return (
            f"TextEncoder({self.name!r}, dim={self.dim}, pooling={self.pooling!r}, "
            f"max_length={self.max_length}, lower={self.lower}, device={str(self.device)!r})"
        )

    @classmethod
    def from_pretrained(
        cls,
        name_or_folder: str | Path,
        *,
        pooling: str | None = None,
        max_length: int | None = None,
        lower: bool | None = None,
        query_prompt: str | None = None,
        document_prompt: str | None = None,
        query_encoder: str | Path | None = None,
        lora: LoraSettings | None = None,
        device: str | None = None,
        engine: str = "torch",
    ) -> TextEncoder:
        """Load an encoder from a folder or, by name, from the Hugging Face hub.

        Settings that are not given are read from the files beside the weights; those of SapBERT and
        BioSyn are known by name.

        Args:
            name_or_folder: Folder, or name on the hub.
            pooling: One of ``POOLINGS``; default: as known, else mean, with a warning.
            max_length: Maximum number of tokens; default: as known, else that of the model.
            lower: Make texts lower-case first; default: as known, else as the tokenizer does.
            query_prompt: Text before what is searched for; default: as its files say.
            document_prompt: Text before what is searched; default: as its files say.
            query_encoder: Another encoder, for what is searched for; default: that of a folder
                with two, as sentence-transformers' ``Router`` writes it, too.
            lora: Adapters to train in place of the weights.
            device: Device of torch; default: a GPU where there is one.
            engine: ``torch``, or ``openvino``, which encodes faster on processors.
        """
        if engine not in ENGINES:
            raise ConfigError(f"engine: expected one of {', '.join(ENGINES)}, found {engine!r}")
        folder = find_encoder(name_or_folder)
        given: dict[str, Any] = {
            "pooling": pooling,
            "max_length": max_length,
            "lower": lower,
            "query_prompt": query_prompt,
            "document_prompt": document_prompt,
        }
        how: dict[str, Any] = {"lora": lora, "device": device, "engine": engine}
        if query_encoder is None and (towers := read_towers(folder)):
            chosen = {key: value for key, value in given.items() if value is not None}
            query, encoder = (
                TextEncoder.from_pretrained(path, **{**settings, **chosen}, **how)
                for path, settings in (towers["query"], towers["document"])
            )
            encoder.name, encoder.folder = str(name_or_folder), folder
            return encoder._beside(query)
        model, tokenizer = load_parts(folder)
        defaults = {
            "pooling": "mean",
            "max_length": max_input_tokens(model, tokenizer),
            "lower": _lowercases(tokenizer),
        }
        settings, origins = choose_settings(str(name_or_folder), folder, given, defaults)
        add_adapters(model, lora)
        model.to(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        encoder = cls(model, tokenizer, settings, str(name_or_folder))
        encoder.origins = origins
        encoder.folder, encoder.engine = folder, engine
        if engine == "openvino":
            encoder._refuse_entities()
            encoder._openvino  # noqa: B018  -- refuse what is missing before the work
        if query_encoder is None:
            return encoder
        return encoder._beside(TextEncoder.from_pretrained(query_encoder, **given, **how))

    def _beside(self, query: TextEncoder) -> TextEncoder:
        """Take another encoder for what is searched for."""
        if query.dim != self.dim:
            raise ConfigError(
                f"query_encoder: expected vectors of {self.dim} numbers, as those of {self.name}, "
                f"found {query.dim}"
            )
        self.query = query
        return self

    @property
    def network(self) -> torch.nn.Module:
        """The weights to train: the model, or those of both sides."""
        if self.query is None:
            return self.model  # type: ignore[no-any-return]
        return torch.nn.ModuleList([self.model, self.query.model])

    @property
    def pooling(self) -> str:
        """The name of the pooling."""
        return self.settings.pooling

    @property
    def max_length(self) -> int:
        """The maximum length of a text in tokens; longer texts are truncated."""
        return self.settings.max_length

    @property
    def lower(self) -> bool:
        """Whether texts are lowercased before tokenisation."""
        return self.settings.lower

    @property
    def dim(self) -> int:
        """The dimension of the vectors."""
        return int(self.model.config.hidden_size)

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        device: torch.device = next(self.model.parameters()).device
        return device

    def prepare(self, text: str) -> str:
        """Normalise whitespace, and lowercase if so set."""
        return prepare_text(text, lower=self.lower)

    def tokenize(self, texts: Sequence[str], n_queries: int = 0) -> dict[str, torch.Tensor]:
        """Tokenise texts to a padded batch: ``input_ids``, ``attention_mask``, ``pooled``.

        Args:
            texts: Texts, without their prompts.
            n_queries: The number of texts, from the first, that get the prompt of queries; the
                others get that of documents.
        """
        queries = (self.query or self)._token_ids(texts[:n_queries], "query")
        return self._pad(queries + self._token_ids(texts[n_queries:], "document"), n_queries)

    def _pad(self, token_ids: Sequence[Sequence[int]], n_queries: int) -> dict[str, torch.Tensor]:
        """Pad a batch; where a prompt is not pooled, ``pooled`` is 0 at its tokens, too."""
        batch = pad(token_ids, self._padding)
        pooled = batch["attention_mask"].clone()
        if not self.settings.include_prompt:
            pooled[:n_queries, : (self.query or self)._n_prompt_tokens["query"]] = 0
            pooled[n_queries:, : self._n_prompt_tokens["document"]] = 0
        batch["pooled"] = pooled
        if self.query is not None:
            batch["queries"] = torch.arange(len(pooled))[:, None] < n_queries
        return batch

    def _prompt(self, name: str) -> str:
        prompt = self.settings.prompt(name)
        return prompt.lower() if self.lower else prompt

    @cached_property
    def _n_prompt_tokens(self) -> dict[str, int]:
        """The number of tokens of each prompt, with the special ones before it."""
        counts = dict.fromkeys(PROMPT_NAMES, 0)
        for name in filter(self._prompt, counts):
            ids: list[int] = self.tokenizer(self._prompt(name))["input_ids"]
            counts[name] = len(ids) - (ids[-1] in self.tokenizer.all_special_ids)
        return counts

    def embed(self, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Compute the pooled vectors of a batch, with gradients.

        Args:
            batch: The tensors of ``tokenize``; without ``pooled`` all tokens are pooled.
        """
        if self.query is not None and "queries" in batch:
            others = dict(batch)
            queries = others.pop("queries")[:, 0]
            sides = ((self.query, queries), (self, ~queries))
            parts = [
                encoder.embed({key: value[rows] for key, value in others.items()})
                for encoder, rows in sides
                if rows.any()
            ]
            order = torch.cat([rows.nonzero().flatten() for _, rows in sides])
            return torch.cat(parts)[order.argsort()]
        inputs = {key: value.to(self.device) for key, value in batch.items()}
        pooled = inputs.pop("pooled", inputs["attention_mask"])
        is_seq2seq = self.model.config.is_encoder_decoder
        model = self.model.get_encoder() if is_seq2seq else self.model
        states = model(**self.add_entity_inputs(inputs)).last_hidden_state  # (batch, tokens, dim)
        return self._pool(states, pooled)

    def _embed_by_engine(self, batch: dict[str, torch.Tensor], precision: str) -> torch.Tensor:
        if self.engine == "torch":
            return self.embed(batch)
        return self._pool(self._openvino.states(batch, precision), batch["pooled"])

    @cached_property
    def _openvino(self) -> OpenVinoModel:
        is_seq2seq = self.model.config.is_encoder_decoder
        return OpenVinoModel(self.model.get_encoder() if is_seq2seq else self.model, self.name)

    def _refuse_entities(self) -> None:
        if self.finder is not None:
            raise ConfigError(
                f"engine: {self.name} reads the entities of a text, which openvino does not; "
                "leave it out"
            )

    def add_entity_inputs(self, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Add the entities that the texts of a batch mention, for a model that takes them."""
        if self.finder is None:
            return inputs
        return inputs | entity_inputs(self.finder, inputs["input_ids"], inputs["attention_mask"])

    @cached_property
    def finder(self) -> EntityMentions | None:
        """Finds the entities that texts mention; None for a model without entity inputs.

        Assign None to encode texts without their entities.
        """
        return make_finder(self.model, self.tokenizer, cased=not self.lower)

    def encode(
        self,
        texts: Sequence[str],
        *,
        prompt_name: str = "document",
        batch_size: int = 64,
        precision: str = "auto",
        normalize: bool = True,
        progress: Progress | None = None,
    ) -> Vectors:
        """Compute one vector for each text, in the order given: (texts, dim).

        Args:
            texts: Names.
            prompt_name: The prompt before each, where the encoder has prompts: ``query`` for
                mentions to search for, ``document`` for names that are searched.
            batch_size: Names of typical length in a batch: fewer longer ones, more shorter ones.
            precision: One of ``models.precision.PRECISIONS``.
            normalize: Scale each vector to length 1.
            progress: Progress to advance by each batch.
        """
        if self.query is not None and prompt_name == "query":
            return self.query.encode(
                texts,
                prompt_name=prompt_name,
                batch_size=batch_size,
                precision=precision,
                normalize=normalize,
                progress=progress,
            )
        if batch_size < 1:
            raise ConfigError(f"batch_size: expected at least 1, found {batch_size}")
        token_ids = self._token_ids(texts, prompt_name)
        lengths = np.fromiter(map(len, token_ids), dtype=np.int64, count=len(token_ids))
        vectors = np.zeros((len(texts), self.dim), dtype=np.float32)
        n_done, n_tokens = 0, max(1, int(lengths.sum()))
        with self._inference(precision):
            for rows in token_batches(lengths, batch_size * USUAL_LENGTH):
                if lengths[rows[0]] == 0:
                    continue  # no tokens: zeros; only with tokenizers without special tokens
                n_queries = len(rows) if prompt_name == "query" else 0
                batch = self._pad([token_ids[row] for row in rows], n_queries)
                vectors[rows] = self._embed_by_engine(batch, precision).float().cpu().numpy()
                if progress:
                    n_done += int(lengths[rows].sum())
                    progress.advance(len(rows), n_done / n_tokens)
        self._check_finite(vectors, texts)
        return to_unit_length(vectors) if normalize else vectors

    def save_pretrained(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Save the encoder; transformers and sentence-transformers load the folder, too.

        Args:
            folder: Folder to write.
            overwrite: Replace a folder that exists.
        """
        with new_folder(Path(folder), overwrite=overwrite) as work:
            if self.query is None:
                write_encoder(work, self.model, self.tokenizer, self.settings)
                return
            prompts = {}
            for side, encoder in (("query", self.query), ("document", self)):
                (work / side).mkdir()
                write_encoder(work / side, encoder.model, encoder.tokenizer, encoder.settings)
                prompts[side] = encoder.settings.prompt(side)
            write_towers(work, prompts)

    def fingerprint(self) -> str:
        """Compute the SHA-256 of weights, tokenizer and settings, which decide the vectors."""
        own = hash_encoder(self.model, self.tokenizer, self.settings)
        if self.query is None:
            return own
        return hashlib.sha256(f"{own} {self.query.fingerprint()}".encode()).hexdigest()

    @property
    def _padding(self) -> int:
        return int(self.tokenizer.pad_token_id or 0)

    def _token_ids(self, texts: Sequence[str], prompt_name: str) -> list[list[int]]:
        if not texts:
            return []
        prompt = self._prompt(prompt_name)
        encoded = self.tokenizer(
            [prompt + self.prepare(text) for text in texts],
            truncation=True,
            max_length=self.max_length,
            return_attention_mask=False,
            return_token_type_ids=False,
        )
        ids: list[list[int]] = encoded["input_ids"]
        return ids

    @contextlib.contextmanager
    def _inference(self, precision: str) -> Iterator[None]:
        """Switch dropout and gradients off; one autocast for all batches casts weights once."""
        training = self.model.training
        self.model.eval()
        in_torch = precision if self.engine == "torch" else "fp32"
        try:
            with torch.inference_mode(), autocast_in(in_torch, self.device):
                yield
        finally:
            self.model.train(training)

    def _check_finite(self, vectors: Vectors, texts: Sequence[str]) -> None:
        rows = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if len(rows):
            raise StoreError(
                f"{self.name}: gives NaN or infinity for {len(rows):,} of {len(texts):,} texts, "
                f"first {shorten(texts[rows[0]])!r}; its weights are damaged, train it again"
            )


def to_unit_length(vectors: Vectors) -> Vectors:
    """Scale vectors (n, dim) to length 1, in place; zero vectors stay zero."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors /= np.maximum(norms, np.finfo(np.float32).tiny)
    return vectors


def _lowercases(tokenizer: Any) -> bool:
    """Return True if a tokenizer lowercases texts itself."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return bool(getattr(tokenizer, "do_lower_case", False))
    normalizer = json.dumps(json.loads(backend.to_str()).get("normalizer"))
    return '"lowercase": true' in normalizer or '"Lowercase"' in normalizer
