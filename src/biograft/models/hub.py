"""Pushing a model to a model hub: its files are listed first, and nothing else is sent.

Only files that belong to a model go; a folder with any other file, such as texts of a training or
predictions, is refused. The token is that of huggingface_hub (``hf auth login``, ``HF_TOKEN``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi

from biograft.errors import ConfigError, NotFoundError, OutputError, shorten

_PARTS = ("model", "encoder")
"""The folders of a run that hold its model."""
_OF_MODELS = (
    *("README.md", "manifest.json", "biograft_encoder.json", "modules.json", "config*.json"),
    *("*.safetensors", "*.safetensors.index.json", "generation_config.json", "entities.jsonl"),
    *("tokenizer*.json", "special_tokens_map.json", "added_tokens.json", "vocab.json", "*.model"),
    *("vocab.txt", "merges.txt", "sentence_bert_config.json", "chat_template.jinja"),
    *("1_Pooling/config.json", "2_Normalize/config.json"),
)


@dataclass(frozen=True, slots=True)
class Upload:
    """Files of a push, and their destination."""

    folder: Path
    files: dict[str, int]
    """The size of each file in bytes."""
    to: str
    host: str


def plan_push(run: str | Path, to: str, *, api: Any = None) -> Upload:
    """List what a push would send; raise an error for a folder with other files than a model's.

    Args:
        run: Folder of a run, or of its model.
        to: Name on the hub: ``OWNER/NAME``.
        api: An ``HfApi``; default: that of the environment.
    """
    folder = Path(run)
    if not folder.is_dir():
        raise NotFoundError(f"{run}: no such folder; expected that of a run or a model")
    if not any((folder / name).exists() for name in ("manifest.json", "config.json")):
        folder = next((p for part in _PARTS if (p := folder / part).is_dir()), folder)
    if not re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", to):
        raise ConfigError(f"to: expected OWNER/NAME, found {to!r}")
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    files = {path.relative_to(folder).as_posix(): path.stat().st_size for path in paths}
    for name in files:
        inner = name.removeprefix("encoder/")
        if not any(fnmatch(inner, pattern) for pattern in _OF_MODELS):
            raise ConfigError(
                f"{folder}: holds {name}, which is no file of a model and may hold texts of "
                "patients; name the folder of the model alone, or remove the file"
            )
    if not any(name.endswith(".safetensors") for name in files):
        raise NotFoundError(f"{folder}: holds no weights (*.safetensors); expected a model")
    return Upload(folder, files, to, str((api or HfApi()).endpoint))


def push(run: str | Path, to: str, *, private: bool = False, api: Any = None) -> str:
    """Send a model to a hub, and return its address there.

    Args:
        run: Folder of a run, or of its model.
        to: Name on the hub: ``OWNER/NAME``.
        private: Only its owner sees it, if it is new.
        api: An ``HfApi``, with another endpoint or token; default: that of the environment.

    >>> push("RUN", "me/disease-ner", private=True)  # doctest: +SKIP
    """
    api = api or HfApi()
    upload = plan_push(run, to, api=api)
    try:
        api.create_repo(to, private=private, exist_ok=True)
        api.upload_folder(
            repo_id=to,
            folder_path=upload.folder,
            allow_patterns=[*upload.files],
            commit_message="Model of biograft",
        )
    except Exception as error:  # the network libraries below have errors of their own
        reason = shorten(str(error).strip().partition("\n")[0])
        raise OutputError(
            f"{upload.host}: {to} was not pushed ({reason}); check the network and the token "
            "(`hf auth login`), and try again"
        ) from error
    return f"{upload.host}/{to}"
