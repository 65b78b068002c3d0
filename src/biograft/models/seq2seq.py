"""Models that generate names: sequence-to-sequence (BART, T5, a decoder on an encoder) or causal.

A causal model (Qwen3, Llama), which has no encoder, reads the text and the prompt, and continues
them with the name.

A given encoder (MiniLM, e5, BERT) becomes one by a small new decoder, of the class
``EncoderDecoderModel`` of transformers. Encoder and decoder share their token embeddings, here and
in training; a saved folder holds them twice, so that transformers alone loads it, too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_MASKED_LM_MAPPING,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    BertConfig,
    BertLMHeadModel,
    EncoderDecoderConfig,
    EncoderDecoderModel,
)

from biograft.artifacts import new_folder
from biograft.errors import ConfigError, StoreError
from biograft.models.adapters import (
    LoraSettings,
    add_adapters,
    merge_adapters,
    save_adapters,
)
from biograft.models.pretrained import (
    count_positions,
    describe_tokenizer,
    find_encoder,
    hash_model,
    load_config,
    load_model,
    quiet_transformers,
    refuse_missing,
    save_tokenizer,
)
from biograft.models.scratch_configs import NewDecoder
from biograft.text.mention_text import END, START, split_context

_MARKED = re.compile(rf"(?<!\S){START}(?!\S).*(?<!\S){END}(?!\S)", re.DOTALL)


def cut_round_mention(
    text: str, tokens: Sequence[int], offsets: Sequence[tuple[int, int]], room: int
) -> list[int]:
    """Truncate a text to ``room`` tokens around its marked mention.

    Of a mention that is too long by itself the first and the last tokens stay, so that both marks
    do; of a text without a mention the first tokens stay.

    Args:
        text: A text.
        tokens: Its token ids.
        offsets: Start and end of each token in the text.
        room: Number of tokens that stay.
    """
    marked = _MARKED.search(text)
    if marked is None:
        return list(tokens[:room])
    inside = [
        position
        for position, (start, end) in enumerate(offsets)
        if start < marked.end() and end > marked.start()
    ]
    first, last = inside[0], inside[-1] + 1
    if last - first > room:
        return [*tokens[first : first + room - room // 2], *tokens[last - room // 2 : last]]
    before, after = split_context(first, len(tokens) - last, room - (last - first))
    return list(tokens[first - before : last + after])


_CHUNK = 16_384
"""Texts that are tokenised at once; encodings take much memory."""
_DROPOUTS = (
    "dropout",
    "attention_dropout",
    "dropout_rate",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
)
_NO_LIMIT = 100_000
_DEFAULT_LIMIT = 512
"""The input length that models without position embeddings (T5) are trained for."""
_CONFIG_KEYS = (
    "model_type",
    "encoder_attention_heads",
    "num_heads",
    "activation_function",
    "scale_embedding",
)
_PART_KEYS = ("model_type", "num_attention_heads", "hidden_act", "layer_norm_eps")
_CAUSAL_KEYS = (*_PART_KEYS, "rms_norm_eps", "rope_parameters", "sliding_window")
_SHARED = "shared_embeddings"
"""Key of a configuration: encoder and decoder share their token embeddings."""
_OF_DECODER = "decoder.bert.embeddings.word_embeddings.weight"


class Seq2SeqModel:
    """A sequence-to-sequence or causal model with its tokenizer, which generates names for texts.

    The decoder starts with the token ``start``; a name ends with the token ``end``.

    Args:
        model: Encoder-decoder or causal model of transformers.
        tokenizer: Its fast tokenizer.
        name: Name in messages.
        max_source: Maximum number of tokens of a source; default: that of the model.
        max_target: Maximum number of tokens of a target, the prompt and ``start`` included;
            default: that of the model; of a causal one at most half of its length.
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
        self.is_causal = not model.config.is_encoder_decoder
        """Whether text, prompt and name are one sequence, which no encoder reads."""
        self.end = self._special("eos_token_id")
        longest = int(tokenizer.model_max_length)
        if self.is_causal:
            self.start = self._special("bos_token_id", "eos_token_id")
            self.padding = self._special("pad_token_id", "eos_token_id")
            self._before, self._after = list[int](), list[int]()
            read = min(count_positions(model), longest)
            self.max_target = self._limit("max_target", max_target, min(read, 1024) // 2)
            self.max_source = self._limit("max_source", max_source, read - self.max_target)
        else:
            self.start = self._special("decoder_start_token_id")
            self.padding = self._special("pad_token_id")
            self._before, self._after = _special_tokens(tokenizer)
            read, written = map(count_positions, (model.get_encoder(), model.get_decoder()))
            self.max_target = self._limit("max_target", max_target, written)
            self.max_source = self._limit("max_source", max_source, read, longest)
        _disable_forced_tokens(model)

    def __repr__(self) -> str:
        limits = f"max_source={self.max_source}, max_target={self.max_target}"
        return f"Seq2SeqModel({self.name!r}, {limits}, device={str(self.device)!r})"

    @classmethod
    def from_pretrained(
        cls,
        name_or_folder: str | Path,
        *,
        max_source: int | None = None,
        max_target: int | None = None,
        dropout: float | None = None,
        decoder: NewDecoder | None = None,
        lora: LoraSettings | None = None,
        device: str | None = None,
    ) -> Seq2SeqModel:
        """Load a model from a folder or, by name, from the Hugging Face hub.

        Args:
            name_or_folder: Folder, or name on the hub.
            max_source: Maximum number of tokens of a source; default: that of the model.
            max_target: Maximum number of tokens of a target; default: that of the model.
            dropout: Dropout in place of the model's, also in attention.
            decoder: Decoder to add to a model that is only an encoder.
            lora: Adapters to train in place of the weights.
            device: Device of torch; default: a GPU where there is one.
        """
        folder = find_encoder(name_or_folder)
        config = load_config(folder)
        for part in (config, *_parts_of(config)) if dropout is not None else ():
            for key in _DROPOUTS:
                if hasattr(part, key):
                    setattr(part, key, dropout)
        if config.is_encoder_decoder:
            model, tokenizer, missing = load_model(AutoModelForSeq2SeqLM, folder, config=config)
            refuse_missing(folder, missing)
            if getattr(config, _SHARED, False):
                _share_embeddings(model)
        elif decoder is not None:
            model, tokenizer = _add_decoder(folder, config, decoder)
        elif type(config) in MODEL_FOR_CAUSAL_LM_MAPPING and (
            type(config) not in MODEL_FOR_MASKED_LM_MAPPING
        ):
            model, tokenizer, missing = load_model(AutoModelForCausalLM, folder, config=config)
            refuse_missing(folder, missing)
        else:
            raise StoreError(
                f"{folder}: a {config.model_type} is no encoder-decoder; expected one, such as "
                "BART or T5, or a table [decoder] beside the encoder, or a causal model"
            )
        add_adapters(model, lora)
        model.to(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        return cls(model, tokenizer, str(folder), max_source=max_source, max_target=max_target)

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        device: torch.device = next(self.model.parameters()).device
        return device

    @property
    def vocabulary_size(self) -> int:
        """The number of tokens that the decoder knows."""
        return int(self.model.config.get_text_config(decoder=True).vocab_size)

    def source_tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of source texts, with special tokens.

        A text that is too long is truncated around its marked mention.
        """
        room = self.max_source - len(self._before) - len(self._after)
        sources = []
        for text, tokens in zip(texts, self.tokens(texts), strict=True):
            fitting = tokens if len(tokens) <= room else self._cut(text, room)
            sources.append([*self._before, *fitting, *self._after])
        return sources

    def inputs(
        self, texts: Sequence[str], prompts: Sequence[str]
    ) -> tuple[list[list[int]], list[list[int]]]:
        """Return the tokens that the encoder reads, and those of the decoder before each name.

        A prompt that is too long loses its beginning. Without an encoder, the decoder reads the
        text, too.

        Args:
            texts: Source texts.
            prompts: Prompt of each name.
        """
        room = self.max_target - 1 - self.longest_name
        sources, ends = self.source_tokens(texts), [each[-room:] for each in self.tokens(prompts)]
        if not self.is_causal:
            return sources, [[self.start, *end] for end in ends]
        begun = [[self.start, *source, *end] for source, end in zip(sources, ends, strict=True)]
        return [[] for _ in texts], begun

    @property
    def longest_name(self) -> int:
        """The maximum number of tokens of a name; the prompt has as many."""
        return (self.max_target - 2) // 2

    def save_pretrained(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Save model and tokenizer as a transformers folder.

        Args:
            folder: Folder to write.
            overwrite: Replace a folder that exists.
        """
        with new_folder(Path(folder), overwrite=overwrite) as work, quiet_transformers():
            model = merge_adapters(self.model)
            weights = model.state_dict()
            if getattr(model.config, _SHARED, False):
                weights[_OF_DECODER] = weights[_OF_DECODER].clone()  # else it is left out
            model.save_pretrained(work, state_dict=weights)
            save_adapters(self.model, work)
            save_tokenizer(self.tokenizer, work)

    def fingerprint(self) -> str:
        """Compute the SHA-256 of everything that decides the generated names."""
        config = self.model.config
        described = {
            "config": {key: str(getattr(config, key, None)) for key in _CONFIG_KEYS},
            "tokenizer": describe_tokenizer(self.tokenizer),
            "tokens": [self.start, self.end, self.padding],
            "limits": [self.max_source, self.max_target],
        }
        keys, parts = (
            (_CAUSAL_KEYS, [config]) if self.is_causal else (_PART_KEYS, _parts_of(config))
        )
        if parts:
            described["parts"] = [
                {key: str(getattr(part, key, None)) for key in keys} for part in parts
            ]
        return hash_model(described, self.model)

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokenise texts as within a sentence: after a space, without special tokens."""
        backend = self.tokenizer.backend_tokenizer
        backend.no_truncation()  # may be left from an earlier call of the tokenizer
        backend.no_padding()
        tokens: list[list[int]] = []
        for first in range(0, len(texts), _CHUNK):
            chunk = [f" {text}" if text else "" for text in texts[first : first + _CHUNK]]
            encodings = backend.encode_batch_fast(chunk, add_special_tokens=False)
            tokens += [encoding.ids for encoding in encodings]
        return tokens

    def _cut(self, text: str, room: int) -> list[int]:
        """Tokenise a text that is too long, and truncate it around its marked mention."""
        text = f" {text}"
        encoding = self.tokenizer.backend_tokenizer.encode(text, add_special_tokens=False)
        return cut_round_mention(text, encoding.ids, encoding.offsets, room)

    def _special(self, *keys: str) -> int:
        """Return a special token: the first of some keys that model or tokenizer states."""
        owners = (self.model.config, getattr(self.model, "generation_config", None), self.tokenizer)
        for key in keys:
            for owner in owners:
                token = getattr(owner, key, None)
                token = token[0] if isinstance(token, list) and token else token
                if isinstance(token, int):
                    return token
        raise StoreError(f"{self.name}: its config.json lacks {keys[0]}; expected a number")

    def _limit(self, name: str, given: int | None, *limits: int) -> int:
        """Return the maximum length of source or target: as given, if the model allows it."""
        longest = min((n for n in limits if 0 < n < _NO_LIMIT), default=None)
        if given is None:
            return longest or _DEFAULT_LIMIT
        if not 8 <= given <= (longest or given):
            raise ConfigError(
                f"{name}: expected 8 to {longest or 'any number'} for {self.name}, found {given}"
            )
        return given


def _parts_of(config: Any) -> list[Any]:
    """Return the configurations of encoder and decoder, where each has its own."""
    return [config.encoder, config.decoder] if isinstance(config, EncoderDecoderConfig) else []


def _add_decoder(
    folder: Path, encoder_config: Any, decoder: NewDecoder
) -> tuple[EncoderDecoderModel, Any]:
    """Load an encoder, and put a new decoder on it that starts from its token embeddings."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(decoder.seed)
        encoder, tokenizer, missing = load_model(AutoModel, folder, config=encoder_config)
        refuse_missing(folder, {key for key in missing if "pooler." not in key})
        model = EncoderDecoderModel(
            encoder=encoder,
            decoder=BertLMHeadModel(_decoder_config(encoder_config, decoder)),
        )
    tokens = {
        "decoder_start_token_id": tokenizer.cls_token_id,
        "eos_token_id": tokenizer.sep_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    if None in tokens.values():
        raise StoreError(
            f"{folder}: its tokenizer has no [CLS], [SEP] or padding; a decoder starts with the "
            "first and ends a name with the second"
        )
    for config in (model.config, model.generation_config):
        for key, token in tokens.items():
            setattr(config, key, token)
    setattr(model.config, _SHARED, True)
    _share_embeddings(model)
    return model, tokenizer


def _decoder_config(encoder: Any, decoder: NewDecoder) -> BertConfig:
    """Return the configuration of a decoder with the sizes of an encoder."""
    width = encoder.hidden_size
    return BertConfig(
        vocab_size=encoder.vocab_size,
        hidden_size=width,
        num_hidden_layers=decoder.layers,
        num_attention_heads=encoder.num_attention_heads,
        intermediate_size=getattr(encoder, "intermediate_size", 4 * width),
        max_position_embeddings=decoder.max_length,
        initializer_range=width**-0.5,  # as in models from scratch
        hidden_dropout_prob=getattr(encoder, "hidden_dropout_prob", 0.1),
        attention_probs_dropout_prob=getattr(encoder, "attention_probs_dropout_prob", 0.1),
        type_vocab_size=1,
        pad_token_id=encoder.pad_token_id,
        is_decoder=True,
        add_cross_attention=True,
    )


def _share_embeddings(model: EncoderDecoderModel) -> None:
    """Let the decoder read and write the token embeddings of the encoder."""
    model.decoder.set_input_embeddings(model.encoder.get_input_embeddings())
    model.decoder.tie_weights()


def _special_tokens(tokenizer: Any) -> tuple[list[int], list[int]]:
    """Return the special tokens that a tokenizer adds before and after a text."""
    backend = tokenizer.backend_tokenizer
    backend.no_padding()  # an encoder's tokenizer.json may ask for it
    encoding = backend.encode(" a", add_special_tokens=True)
    ordinary = [i for i, special in enumerate(encoding.special_tokens_mask) if not special]
    return encoding.ids[: ordinary[0]], encoding.ids[ordinary[-1] + 1 :]


def _disable_forced_tokens(model: Any) -> None:
    """Disable forced tokens; the trie of names decides what is generated."""
    for config in (model.config, getattr(model, "generation_config", None)):
        for key in ("forced_bos_token_id", "forced_eos_token_id"):
            if getattr(config, key, None) is not None:
                setattr(config, key, None)
