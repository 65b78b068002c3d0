"""Loading and saving of transformers models and tokenizers, from folders or the hub.

Missing weights are an error here; transformers would initialise them at random and only log it.
Code in a folder, or named by it, is never run: everything is loaded with
``trust_remote_code=False``. Without it, transformers would ask on standard input, and take what is
piped into a command for the answer. Attention is computed by torch, whatever kernel a folder names.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from logging import ERROR
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError, StrictDataclassError
from safetensors import SafetensorError
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM, AutoTokenizer
from transformers.utils import logging

from biograft.errors import ConfigError, InputError, NotFoundError, StoreError, shorten
from biograft.models.adapters import merge_adapters, save_adapters
from biograft.models.settings import (
    OLD_POOLING_KEYS,
    PROMPT_NAMES,
    ROUTER,
    EncoderSettings,
    write_settings,
)

ENCODER_FILES = ("*.json", "*.txt", "*.model", "*.safetensors", "*.bin")
"""Files that are downloaded of an encoder, and of a tokenizer."""
TOKENIZER_FILES = ("*.json", "*.txt", "*.model")
_UNWANTED = ["onnx/*", "openvino/*", "tf_*", "flax_*"]
_NO_LIMIT = 100_000
"""Tokenizers without a length limit state a number above this."""
_FAULTS = (
    *(OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, ImportError),
    *(SafetensorError, StrictDataclassError, ConfigError, UnpicklingError, EOFError),
)
"""Errors that transformers raises for missing, damaged or foreign folders."""
_CODE_FILES = ("config.json", "tokenizer_config.json")
"""Files in which ``auto_map`` names Python modules to load a folder with."""


def find_encoder(name: str | Path, files: Sequence[str] = ENCODER_FILES) -> Path:
    """Return the folder of an encoder: the one named, or a cached or downloaded copy.

    Args:
        name: Folder, or name on the hub.
        files: Patterns of the files to download.
    """
    folder = Path(name)
    if folder.is_dir():
        return folder
    if isinstance(name, Path) or folder.exists() or _looks_like_a_path(name):
        raise NotFoundError(f"{name}: no such folder; expected the folder of an encoder")
    try:
        return Path(snapshot_download(name, local_files_only=True))
    except (OSError, ValueError):
        pass
    try:
        return Path(snapshot_download(name, allow_patterns=[*files], ignore_patterns=_UNWANTED))
    except (OSError, ValueError, HfHubHTTPError) as error:
        raise NotFoundError(
            f"{name}: no such folder, and nothing of that name could be downloaded; name the "
            "folder of an encoder, or download it where there is a network and copy the folder"
        ) from error


def load_parts(folder: Path) -> tuple[Any, Any]:
    """Load an encoder and its tokenizer from a folder; weights in 32 bits, complete and finite."""
    model, tokenizer, missing = load_model(AutoModel, folder)
    # our poolings do not use the pooler
    refuse_missing(folder, {key for key in missing if "pooler." not in key})
    return model, tokenizer


@dataclass(frozen=True, slots=True)
class MaskedLM:
    """A masked language model and its tokenizer."""

    model: Any
    tokenizer: Any
    new_head: bool
    """Whether the head is new, because the folder had none; it must be trained before use."""


def load_masked_lm(name_or_folder: str | Path, *, seed: int = 0) -> MaskedLM:
    """Load a masked language model; a missing head is initialised by the seed.

    Args:
        name_or_folder: Folder, or name on the hub.
        seed: Seed of a missing head.
    """
    folder = find_encoder(name_or_folder)
    model, tokenizer, missing = load_model(AutoModelForMaskedLM, folder, seed=seed)
    body = {key for key in missing if key.startswith(f"{model.base_model_prefix}.")}
    refuse_missing(folder, body)
    return MaskedLM(model, tokenizer, new_head=bool(missing - body))


def load_model(
    kind: Any, folder: Path, config: Any = None, *, seed: int = 0
) -> tuple[Any, Any, Set[str]]:
    """Load a model and its tokenizer; also return the names of missing weights.

    Args:
        kind: An Auto class of transformers.
        folder: Folder of the model.
        config: Configuration in place of that of the folder.
        seed: Seed of missing weights, so that a saved copy is the same in every process.
    """
    config = config or load_config(folder, "encoder")
    try:
        with quiet_transformers(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model, report = kind.from_pretrained(
                folder,
                local_files_only=True,
                trust_remote_code=False,
                dtype=torch.float32,
                output_loading_info=True,
                config=config,
            )
            tokenizer = _tokenizer(folder)
    except _FAULTS as error:
        raise _unloadable(folder, "encoder", error) from error
    for key, weight in model.named_parameters():
        if not torch.isfinite(weight).all():
            raise StoreError(f"{folder}: the weights hold NaN or infinity ({key}); train it again")
    return model, tokenizer, set(report["missing_keys"])


def build_empty(kind: Any, config: Any) -> Any:
    """Build a model whose weights take no memory, until others are put in their place.

    Args:
        kind: An Auto class of transformers.
        config: Its configuration.
    """
    with quiet_transformers(), torch.device("meta"):
        return kind.from_config(config, trust_remote_code=False)


def load_config(folder: Path, called: str = "model") -> Any:
    """Load the transformers configuration of a folder.

    Args:
        folder: Folder of the model.
        called: What it is called in errors.
    """
    refuse_code(folder)
    try:
        with quiet_transformers():
            config = AutoConfig.from_pretrained(
                folder, local_files_only=True, trust_remote_code=False
            )
    except _FAULTS as error:
        raise _unloadable(folder, called, error) from error
    n_layers = getattr(config, "num_hidden_layers", 1)
    if not isinstance(n_layers, int) or n_layers < 1:
        raise StoreError(f"{folder}: num_hidden_layers: expected 1 or more, found {n_layers!r}")
    config._attn_implementation = None  # it may name a kernel of the hub, which is code
    return config


def load_tokenizer(folder: Path, kind: Any = AutoTokenizer) -> Any:
    """Load a tokenizer.

    Args:
        folder: Folder of the tokenizer.
        kind: A tokenizer class of transformers.
    """
    refuse_code(folder)
    try:
        with quiet_transformers():
            return _tokenizer(folder, kind)
    except _FAULTS as error:
        raise InputError(
            f"holds no tokenizer that can be loaded ({_reason(error)})", path=folder
        ) from error


def refuse_code(folder: Path) -> None:
    """Refuse a folder that brings Python code to load it with."""
    for name in _CODE_FILES:
        try:
            content = json.loads((folder / name).read_bytes())
        except (OSError, ValueError, RecursionError):
            continue  # transformers reports unreadable files
        if isinstance(content, dict) and content.get("auto_map"):
            raise StoreError(
                f"{folder / name}: auto_map names Python code to load the model with, and biograft "
                "does not run code of a folder; use an encoder that transformers supports, or, if "
                "it supports this one, remove auto_map from the file"
            )


def refuse_missing(folder: Path, missing: Set[str]) -> None:
    """Refuse a folder with missing weights.

    Args:
        folder: Folder of the model, for the error.
        missing: Names of the missing weights.
    """
    if missing:
        raise StoreError(
            f"{folder}: the weights lack {len(missing)} of the model's tensors "
            f"({min(missing)}, ...); get the encoder again, or convert it first"
        )


def count_positions(model: Any) -> int:
    """Return the number of positions of a model."""
    positions = int(getattr(model.config, "max_position_embeddings", _NO_LIMIT))
    return positions - first_position(model)


def first_position(model: Any) -> int:
    """Return the position of the first token; RoBERTa counts from the padding id on."""
    for name, module in model.named_modules():
        padding = getattr(module, "padding_idx", None)
        if name.endswith("position_embeddings") and padding is not None:
            return int(padding) + 1
    return 0


def max_input_tokens(model: Any, tokenizer: Any) -> int:
    """Return the maximum input length.

    Args:
        model: Model of transformers.
        tokenizer: Its tokenizer.
    """
    limits = (count_positions(model), int(tokenizer.model_max_length))
    return min((n for n in limits if 0 < n < _NO_LIMIT), default=512)


def _tokenizer(folder: Path, kind: Any = AutoTokenizer) -> Any:
    return kind.from_pretrained(folder, local_files_only=True, trust_remote_code=False)


def _unloadable(folder: Path, what: str, error: Exception) -> StoreError:
    return StoreError(
        f"{folder}: holds no {what} that can be loaded ({_reason(error)}); expected the "
        "config.json, weights and tokenizer of a transformers model"
    )


def _reason(error: Exception) -> str:
    return shorten(str(error).strip().partition("\n")[0])


def _looks_like_a_path(name: str) -> bool:
    return name.startswith((".", "~", os.sep)) or name.count("/") > 1 or "\\" in name


@contextlib.contextmanager
def quiet_transformers() -> Iterator[None]:
    """Switch off progress bars and warnings of transformers; errors are raised as usual."""
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(ERROR)
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


_MODULES = (("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize"))
_TYPE, _PROMPTS = "sentence_transformers.models.", "config_sentence_transformers.json"
_SETTING_KEYS = ("model_type", "num_attention_heads", "hidden_act", "layer_norm_eps")
"""Fields of a model's configuration that change its vectors but not its weights."""


def write_encoder(folder: Path, model: Any, tokenizer: Any, settings: EncoderSettings) -> None:
    """Write model, tokenizer and settings into a folder.

    Args:
        folder: Folder to write to.
        model: Model of transformers.
        tokenizer: Its tokenizer.
        settings: Pooling, maximum length and lowercasing.
    """
    with quiet_transformers():
        merge_adapters(model).save_pretrained(folder)
        save_adapters(model, folder)
    save_tokenizer(tokenizer, folder)
    _write_json(folder, _sentence_transformers(model.config.hidden_size, settings))
    write_settings(folder, settings)


def write_towers(folder: Path, prompts: Mapping[str, str]) -> None:
    """Write the files by which sentence-transformers joins the encoders of both sides.

    Args:
        folder: Folder that holds the folders ``query`` and ``document``.
        prompts: The prompt of each.
    """
    paths = {
        side: {f"{side}/{path}".rstrip("/"): f"{_TYPE}{kind}" for path, kind in _MODULES}
        for side in prompts
    }
    router = {
        "types": {name: kind for types in paths.values() for name, kind in types.items()},
        "structure": {side: list(types) for side, types in paths.items()},
        "parameters": {"default_route": "document", "allow_empty_key": True},
    }
    modules = [{"idx": 0, "name": "0", "path": "", "type": f"{_TYPE}Router"}]
    _write_json(
        folder,
        {
            ROUTER: router,
            "modules.json": modules,
            _PROMPTS: {"similarity_fn_name": "cosine", "prompts": prompts},
        },
    )


def _write_json(folder: Path, contents: Mapping[str, Any]) -> None:
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _sentence_transformers(dim: int, settings: EncoderSettings) -> dict[str, Any]:
    """Return the settings as files that every version of sentence-transformers reads."""
    return {
        "modules.json": [
            {"idx": row, "name": str(row), "path": path, "type": f"{_TYPE}{kind}"}
            for row, (path, kind) in enumerate(_MODULES)
        ],
        "sentence_bert_config.json": {
            "max_seq_length": settings.max_length,
            "do_lower_case": settings.lower,
        },
        _PROMPTS: {
            "similarity_fn_name": "cosine",
            "prompts": {name: settings.prompt(name) for name in PROMPT_NAMES},
        },
        "1_Pooling/config.json": {
            "word_embedding_dimension": dim,
            **{key: settings.pooling == mode for key, mode in OLD_POOLING_KEYS.items()},
            "include_prompt": settings.include_prompt,
        },
        "2_Normalize/config.json": {},
    }


def hash_encoder(model: Any, tokenizer: Any, settings: EncoderSettings) -> str:
    """Compute the SHA-256 of everything that decides the vector of a text.

    Args:
        model: Model of transformers.
        tokenizer: Its tokenizer.
        settings: Pooling, maximum length and lowercasing.
    """
    config = {key: str(getattr(model.config, key, None)) for key in _SETTING_KEYS}
    if layers := getattr(model.config, "knowledge_layers", None):
        config["knowledge_layers"] = json.dumps(layers, sort_keys=True)
    names = [list(entity.names) for entity in getattr(model, "entities", ())]
    if any(names):  # they decide which entities of a text are found
        config["names"] = hashlib.sha256(json.dumps(names).encode()).hexdigest()
    plain = {
        "config": config,
        "tokenizer": describe_tokenizer(tokenizer),
        **settings.to_json(),
    }
    return hash_model(plain, model)


def hash_model(described: Mapping[str, Any], model: Any) -> str:
    """Compute the SHA-256 of a description and of a model's weights.

    Args:
        described: Plain values that decide about the vectors, too.
        model: Model of transformers.
    """
    digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode())
    for key, tensor in sorted(merge_adapters(model).state_dict().items()):
        if "pooler." in key:
            continue  # our poolings do not use it, and it may be random
        digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}".encode())
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(memoryview(flat.view(torch.uint8).numpy()))
    return digest.hexdigest()


def save_tokenizer(tokenizer: Any, folder: Path) -> None:
    """Write a tokenizer into a folder, without the padding and truncation of its last call.

    With them, the file would depend on what the process had encoded before.

    Args:
        tokenizer: The tokenizer.
        folder: Folder to write to.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        backend.no_padding()
        backend.no_truncation()
    with quiet_transformers():
        tokenizer.save_pretrained(folder)


def describe_tokenizer(tokenizer: Any) -> Any:
    """Return the definition of a tokenizer, without the padding and truncation of its last call."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return [sorted(tokenizer.get_vocab().items()), str(tokenizer.special_tokens_map)]
    content = json.loads(backend.to_str())
    return {key: value for key, value in content.items() if key not in ("padding", "truncation")}
