"""Causal models small enough for a test, with weights large enough for clear scores."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import torch
from tiny_models import tiny_tokenizer
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

_SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
_MORE = {"num_key_value_heads": 2, "intermediate_size": 48, "max_position_embeddings": 128}
CAUSAL = {
    "Qwen3": (Qwen3Config, Qwen3ForCausalLM, _SIZES | _MORE | {"head_dim": 8}),
    "Llama": (LlamaConfig, LlamaForCausalLM, _SIZES | _MORE),
    "GPT-2": (GPT2Config, GPT2LMHeadModel, {"n_embd": 32, "n_layer": 2, "n_head": 4}),
}


def tiny_causal_folder(
    path: Path, texts: Iterable[str], name: str = "Qwen3", scale: float = 6
) -> Path:
    """Write a random causal model of a kind, its weights scaled, as a transformers folder."""
    config, kind, sizes = CAUSAL[name]
    tokenizer = tiny_tokenizer(texts)
    tokenizer.model_max_length = 128
    tokens = {
        "vocab_size": len(tokenizer),
        "bos_token_id": tokenizer.cls_token_id,
        "eos_token_id": tokenizer.sep_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = kind(config(**tokens, **sizes))
        with torch.no_grad():
            for weight in model.parameters():
                if weight.ndim == 2:
                    weight.mul_(scale)
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path
