"""The settings of a text encoder beside its weights: pooling, maximum length, case, prompts.

They are given, or read from ``biograft_encoder.json``, else from the files of
sentence-transformers; of published families of encoders they are known by name. What none of these
states gets a default, with a warning if it is the pooling.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from biograft.artifacts import ArtifactKind, describe_files
from biograft.config import check_choice
from biograft.errors import ConfigError, EncoderWarning, StoreError

SETTINGS = ArtifactKind(
    format="biograft-encoder",
    version=1,
    called="encoder settings",
    remedy="save the encoder again",
    file="biograft_encoder.json",
)
ROUTER = "router_config.json"
"""File of sentence-transformers that names the encoder of each side."""
_KNOWN_MODULES = ("Transformer", "Pooling", "Normalize")
OLD_POOLING_KEYS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
"""Poolings by the keys of sentence-transformers before version 6."""
PROMPT_NAMES = {"query": ("query",), "document": ("document", "passage", "corpus")}
"""The sides of a search, and the names that sentence-transformers has for the prompt of each."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EncoderSettings:
    """Settings that turn a text into one vector."""

    pooling: str
    """Name of a pooling, one of ``POOLINGS``."""
    max_length: int
    """Maximum number of tokens of a text, special tokens included; longer texts are truncated."""
    lower: bool
    """Whether texts are lowercased before tokenisation."""
    query_prompt: str = ""
    """Text before each text that is searched for, such as ``query: `` of E5."""
    document_prompt: str = ""
    """Text before each text that is searched, such as a name in an index."""
    include_prompt: bool = True
    """Whether the tokens of the prompt are pooled, too."""

    def __post_init__(self) -> None:
        if self.max_length < 1:
            raise ConfigError(f"max_length: expected at least 1, found {self.max_length}")

    def prompt(self, name: str) -> str:
        """Return the prompt called ``query`` or ``document``."""
        check_choice("prompt_name", name, PROMPT_NAMES)
        return self.query_prompt if name == "query" else self.document_prompt

    def to_json(self) -> dict[str, Any]:
        """Return the settings as plain values; prompts only where there are any."""
        values = asdict(self)
        if not (self.query_prompt or self.document_prompt):
            for name in ("query_prompt", "document_prompt", "include_prompt"):
                del values[name]
        return values


@dataclass(frozen=True, slots=True)
class EncoderFamily:
    """Published encoders whose pooling and maximum length are known, recognised by name."""

    name: str
    pattern: re.Pattern[str]
    """Matches the beginning of a model's name, without its owner."""
    settings: Mapping[str, Any]


FAMILIES = (
    EncoderFamily(
        "SapBERT, mean-token variant",
        re.compile(r"sapbert\b.*\bmean\b", re.IGNORECASE),
        {"pooling": "mean", "max_length": 25, "lower": True},
    ),
    EncoderFamily(
        "SapBERT",
        re.compile(r"sapbert\b", re.IGNORECASE),
        {"pooling": "cls", "max_length": 25, "lower": True},
    ),
    EncoderFamily(
        "BioSyn",
        re.compile(r"biosyn-", re.IGNORECASE),
        {"pooling": "cls", "max_length": 25, "lower": True},
    ),
)
"""The first family that matches counts. All were trained on lowercased names, those whose tokenizer
keeps case, too."""


def find_family(name: str, folder: Path) -> EncoderFamily | None:
    """Recognise the family of an encoder by its name, its folder or the origin in config.json.

    Args:
        name: Name of the encoder.
        folder: Its folder.
    """
    for known in _names(name, folder):
        last = re.split(r"[/\\]", known.rstrip("/\\"))[-1]
        for family in FAMILIES:
            if family.pattern.match(last):
                return family
    return None


def _names(name: str, folder: Path) -> Iterator[str]:
    """Return the names under which an encoder may be known."""
    yield name
    yield folder.absolute().name
    for part in folder.absolute().parts:  # the hub's cache: models--OWNER--NAME/snapshots/HASH
        if part.startswith("models--"):
            yield part.replace("--", "/")
    try:
        config = json.loads((folder / "config.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return  # transformers reports unreadable files
    origin = config.get("_name_or_path") if isinstance(config, dict) else None
    if isinstance(origin, str):
        yield origin


def choose_settings(
    name: str, folder: Path, given: Mapping[str, Any], defaults: Mapping[str, Any]
) -> tuple[EncoderSettings, dict[str, str]]:
    """Choose the settings of an encoder; also return the origin of each.

    Each value comes from the first of ``given``, the files of the folder, the family of the
    encoder, and ``defaults``. Pooling is nowhere in a plain folder; its default is a guess, and
    warned of.

    Args:
        name: Name of the encoder.
        folder: Its folder.
        given: Values of the caller; None is none.
        defaults: The limit of the model, lowercasing of the tokenizer, and so on.
    """
    family = find_family(name, folder)
    known = dict(family.settings) if family else {}
    if family:
        known["max_length"] = min(known["max_length"], defaults["max_length"])
    layers = [
        ("default", dict(defaults)),
        (f"known of {family.name}" if family else "", known),
        ("files", find_settings(folder)),
        ("given", {key: value for key, value in given.items() if value is not None}),
    ]
    values = {key: value for _, layer in layers for key, value in layer.items()}
    origins = {key: origin for origin, layer in layers for key in layer}
    settings = EncoderSettings(**values)
    if origins["pooling"] == "default":
        warnings.warn(
            f"{name}: nothing beside the weights says how its vectors are pooled; using "
            f"{settings.pooling} pooling and at most {settings.max_length} tokens; choose with "
            "--pooling and --max-length (in a recipe: encoder.pooling and encoder.max_length)",
            EncoderWarning,
            stacklevel=3,
        )
    return settings, origins


def write_settings(folder: Path, settings: EncoderSettings) -> None:
    """Write the settings as our own file, with the hashes of all that is in the folder so far.

    Args:
        folder: Folder of the encoder.
        settings: Pooling, maximum length and lowercasing.
    """
    files = {
        name: entry
        for name, entry in describe_files(folder).items()
        if name != SETTINGS.file and name.endswith((".safetensors", ".json", ".txt"))
    }
    SETTINGS.write(folder, {**settings.to_json(), "files": files}, overwrite=True)


def find_settings(folder: Path) -> dict[str, Any]:
    """Read the settings of a folder; what its files do not state is absent."""
    if (folder / SETTINGS.file).exists():
        return _read_own(folder)
    if (folder / "modules.json").exists():
        return _read_sentence_transformers(folder)
    return {}


def _read_own(folder: Path) -> dict[str, Any]:
    content = SETTINGS.read(folder)
    required = ("pooling", "max_length", "lower")
    known = [name for name in _TYPES if name in content or name in required]
    for key in known:
        if type(content.get(key)) is not _TYPES[key]:
            raise SETTINGS.damaged(folder / SETTINGS.file, f"{key} is {content.get(key)!r}")
    return {key: content[key] for key in known}


_TYPES = {
    "pooling": str,
    "max_length": int,
    "lower": bool,
    "query_prompt": str,
    "document_prompt": str,
    "include_prompt": bool,
}


def read_towers(folder: Path) -> dict[str, tuple[Path, dict[str, Any]]]:
    """Read the folder and settings of the encoder of each side, from a Router's file; {}: none."""
    if not (folder / ROUTER).exists():
        return {}
    content = _read_json(folder / ROUTER)
    types, structure = content.get("types"), content.get("structure")
    if not (isinstance(types, dict) and isinstance(structure, dict)) or (
        sorted(structure) != sorted(PROMPT_NAMES)
    ):
        raise StoreError(
            f"{folder / ROUTER}: expected one encoder for each of {', '.join(PROMPT_NAMES)}"
        )
    towers, prompts = {}, _read_prompts(folder / "config_sentence_transformers.json")
    for side, modules in structure.items():
        parts = [(types.get(name), folder / str(name)) for name in modules]
        own = {f"{side}_prompt": prompts[f"{side}_prompt"]} if prompts else {}
        towers[side] = (parts[0][1], _read_modules(folder, parts) | own)
    return towers


def _read_sentence_transformers(folder: Path) -> dict[str, Any]:
    modules = _read_json(folder / "modules.json", list)
    parts = [(module.get("type"), folder / str(module.get("path", ""))) for module in modules]
    return _read_modules(folder, parts) | _read_prompts(
        folder / "config_sentence_transformers.json"
    )


def _read_modules(folder: Path, modules: list[tuple[Any, Path]]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for name, path in modules:
        kind = str(name).rpartition(".")[2]
        if kind not in _KNOWN_MODULES:
            raise StoreError(
                f"{folder}: its modules.json has a layer {kind!r}; "
                f"biograft reads {', '.join(_KNOWN_MODULES)} only"
            )
        if kind == "Pooling":
            settings |= _read_pooling(path / "config.json")
        if kind == "Transformer" and (path / "sentence_bert_config.json").exists():
            content = _read_json(path / "sentence_bert_config.json")
            if content.get("max_seq_length"):
                settings["max_length"] = int(content["max_seq_length"])
            if content.get("do_lower_case"):
                settings["lower"] = True
    return settings


def _read_pooling(path: Path) -> dict[str, Any]:
    """Read the pooling from a file of sentence-transformers, before and since version 6."""
    content = _read_json(path)
    chosen = content.get("pooling_mode") or [
        OLD_POOLING_KEYS.get(key, key)
        for key, value in content.items()
        if key.startswith("pooling_mode_") and value
    ]
    modes = [chosen] if isinstance(chosen, str) else list(chosen)
    if len(modes) != 1 or modes[0] not in OLD_POOLING_KEYS.values():
        raise StoreError(
            f"{path}: pooling is {', '.join(map(str, modes)) or 'missing'}; expected one of "
            f"{', '.join(OLD_POOLING_KEYS.values())}; name a pooling yourself"
        )
    skipped = {"include_prompt": False} if content.get("include_prompt") is False else {}
    return {"pooling": modes[0], **skipped}


def _read_prompts(path: Path) -> dict[str, str]:
    """Read the prompts of both sides from a file of sentence-transformers."""
    content = _read_json(path) if path.exists() else {}
    prompts = content.get("prompts")
    if not isinstance(prompts, dict) or not any(prompts.values()):
        return {}
    usual = prompts.get(content.get("default_prompt_name")) or ""
    return {
        f"{side}_prompt": str(next((prompts[n] for n in names if n in prompts), usual))
        for side, names in PROMPT_NAMES.items()
    }


def _read_json(path: Path, kind: type = dict) -> Any:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(f"{path}: cannot be read ({error}); get the encoder again") from error
    if not isinstance(content, kind):
        raise StoreError(f"{path}: expected a JSON {kind.__name__}; get the encoder again")
    return content


def prepare_text(text: str, *, lower: bool) -> str:
    """Normalise the whitespace of a text.

    Args:
        text: The text.
        lower: Make it lower-case, too.
    """
    normalised = " ".join(text.split())
    return normalised.lower() if lower else normalised
