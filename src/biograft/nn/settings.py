"""The settings of a text encoder beside its weights: pooling, maximum length, lowercasing.

They are read from ``biograft_encoder.json``, else from the files of sentence-transformers, else
from the tokenizer and the model.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from biograft.artifacts import ArtifactKind
from biograft.errors import ConfigError, StoreError

SETTINGS = ArtifactKind(
    format="biograft-encoder",
    version=1,
    called="encoder settings",
    remedy="save the encoder again",
    file="biograft_encoder.json",
)
_KNOWN_MODULES = ("Transformer", "Pooling", "Normalize")
_OLD_MODES = {"pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean"}


@dataclass(frozen=True, kw_only=True, slots=True)
class EncoderSettings:
    """How a text becomes one vector."""

    pooling: str
    """Name of a pooling: ``cls`` or ``mean``."""
    max_length: int
    """Maximum number of tokens of a text, special tokens included; longer texts are truncated."""
    lower: bool
    """Whether texts are lowercased before tokenisation."""

    def __post_init__(self) -> None:
        if self.max_length < 1:
            raise ConfigError(f"max_length: expected at least 1, found {self.max_length}")


def write_settings(folder: Path, settings: EncoderSettings) -> None:
    """Write the settings as our own file."""
    SETTINGS.write(folder, asdict(settings), overwrite=True)


def find_settings(folder: Path) -> dict[str, Any]:
    """Read pooling, max_length and lower from a folder; what its files do not state is absent."""
    if (folder / SETTINGS.file).exists():
        return _read_own(folder)
    if (folder / "modules.json").exists():
        return _read_sentence_transformers(folder)
    return {}


def _read_own(folder: Path) -> dict[str, Any]:
    content = SETTINGS.read(folder)
    kinds = {"pooling": str, "max_length": int, "lower": bool}
    for key, kind in kinds.items():
        if type(content.get(key)) is not kind:
            raise SETTINGS.damaged(folder / SETTINGS.file, f"{key} is {content.get(key)!r}")
    return {key: content[key] for key in kinds}


def _read_sentence_transformers(folder: Path) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for module in _read_json(folder / "modules.json", list):
        kind = str(module.get("type", "")).rpartition(".")[2]
        path = folder / str(module.get("path", ""))
        if kind not in _KNOWN_MODULES:
            raise StoreError(
                f"{folder}: its modules.json has a layer {kind!r}; "
                f"biograft reads {', '.join(_KNOWN_MODULES)} only"
            )
        if kind == "Pooling":
            settings["pooling"] = _read_pooling(path / "config.json")
        if kind == "Transformer" and (path / "sentence_bert_config.json").exists():
            content = _read_json(path / "sentence_bert_config.json")
            if content.get("max_seq_length"):
                settings["max_length"] = int(content["max_seq_length"])
            if content.get("do_lower_case"):
                settings["lower"] = True
    return settings


def _read_pooling(path: Path) -> str:
    """Read the pooling from a file of sentence-transformers, before and since version 6."""
    content = _read_json(path)
    if "pooling_mode" in content:
        return str(content["pooling_mode"])
    chosen = [key for key, value in content.items() if key.startswith("pooling_mode") and value]
    if len(chosen) == 1 and chosen[0] in _OLD_MODES:
        return _OLD_MODES[chosen[0]]
    raise StoreError(
        f"{path}: pooling is {', '.join(chosen) or 'missing'}; expected one of "
        f"{', '.join(_OLD_MODES)}; name a pooling yourself"
    )


def _read_json(path: Path, kind: type = dict) -> Any:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StoreError(f"{path}: cannot be read ({error}); get the encoder again") from error
    if not isinstance(content, kind):
        raise StoreError(f"{path}: expected a JSON {kind.__name__}; get the encoder again")
    return content


def prepare_text(text: str, *, lower: bool) -> str:
    """Normalise whitespace, and lowercase if so set."""
    normalised = " ".join(text.split())
    return normalised.lower() if lower else normalised
