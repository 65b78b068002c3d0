"""Write an encoder so that biograft, transformers and sentence-transformers all read it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from biograft.nn.loading import quiet_transformers
from biograft.nn.settings import EncoderSettings, write_settings

_MODULES = (("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize"))
_TELLING = ("model_type", "num_attention_heads", "hidden_act", "layer_norm_eps")
"""Of a model's configuration: what changes its vectors and is not seen in its weights."""
_OF_KNOWLEDGE = (
    *("knowledge_after", "n_nearest", "max_mentions", "compat"),
    *("type_attention", "node_attention", "told_share"),
)
"""The same of models with a knowledge layer; others have none of these."""


def write_encoder(folder: Path, model: Any, tokenizer: Any, settings: EncoderSettings) -> None:
    """Write model, tokenizer and settings into a folder."""
    with quiet_transformers():
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    write_settings(folder, settings)
    for place, content in _sentence_transformers(model.config.hidden_size, settings).items():
        path = folder / place
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _sentence_transformers(dim: int, settings: EncoderSettings) -> dict[str, Any]:
    """Say the settings in the words that every version of sentence-transformers reads."""
    return {
        "modules.json": [
            {
                "idx": row,
                "name": str(row),
                "path": path,
                "type": f"sentence_transformers.models.{kind}",
            }
            for row, (path, kind) in enumerate(_MODULES)
        ],
        "sentence_bert_config.json": {
            "max_seq_length": settings.max_length,
            "do_lower_case": settings.lower,
        },
        "config_sentence_transformers.json": {"similarity_fn_name": "cosine"},
        "1_Pooling/config.json": {
            "word_embedding_dimension": dim,
            "pooling_mode_cls_token": settings.pooling == "cls",
            "pooling_mode_mean_tokens": settings.pooling == "mean",
        },
        "2_Normalize/config.json": {},
    }


def hash_encoder(model: Any, tokenizer: Any, settings: EncoderSettings) -> str:
    """Compute the SHA-256 of all that decides which vector a text gets."""
    config = {key: str(getattr(model.config, key, None)) for key in _TELLING}
    told = (key for key in _OF_KNOWLEDGE if hasattr(model.config, key))
    config |= {key: str(getattr(model.config, key)) for key in told}
    if getattr(model.config, "n_probed", 0):  # models from before it was there search exactly
        config["n_probed"] = str(model.config.n_probed)
    names = [list(entity.names) for entity in getattr(model, "entities", ())]
    if any(names):  # by which a model is told what a text names
        config["names"] = hashlib.sha256(json.dumps(names).encode()).hexdigest()
    plain = {
        "config": config,
        "tokenizer": describe_tokenizer(tokenizer),
        "pooling": settings.pooling,
        "max_length": settings.max_length,
        "lower": settings.lower,
    }
    return hash_model(plain, model)


def hash_model(described: Mapping[str, Any], model: Any) -> str:
    """Compute the SHA-256 of a description and of a model's weights."""
    digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode())
    for key, tensor in sorted(model.state_dict().items()):
        if "pooler." in key:
            continue  # no pooling of ours reads it, and it may be random
        digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}".encode())
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(memoryview(flat.view(torch.uint8).numpy()))
    return digest.hexdigest()


def describe_tokenizer(tokenizer: Any) -> Any:
    """Give what a tokenizer is, without the padding and truncation of its last call."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return [sorted(tokenizer.get_vocab().items()), str(tokenizer.special_tokens_map)]
    content = json.loads(backend.to_str())
    return {key: value for key, value in content.items() if key not in ("padding", "truncation")}
