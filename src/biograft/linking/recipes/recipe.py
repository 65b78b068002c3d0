"""A recipe: one TOML file that says what kind of linker is trained, on what, and how."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from biograft.config import find_recipe, from_mapping, load_toml, set_value
from biograft.errors import ConfigError, nearest
from biograft.linking.recipes.kinds import KINDS, RecipeKind
from biograft.recipes.recipe import EncoderConfig

_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class DataConfig:
    """Which gold standards are learned from; paths count from the working directory."""

    train: tuple[str, ...] = ()
    dev: tuple[str, ...] = ()
    format: str = ""
    types: tuple[str, ...] = ()
    """Mentions of these types only; none: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkingRecipe:
    """What kind of linker is trained, on what, and how."""

    name: str
    kind: str
    about: str = ""
    config: Any
    """The configuration of the kind."""
    encoder: EncoderConfig | None = None
    """The encoder that is trained or that makes vectors, where the kind has one apart."""
    data: DataConfig = field(default_factory=DataConfig)

    @classmethod
    def load(
        cls, name_or_path: str | Path, overrides: Sequence[str] = (), encoder: str = ""
    ) -> LinkingRecipe:
        """Load a shipped recipe by name, or a file; overrides are ``table.key=value`` texts."""
        path = find_recipe(name_or_path, shipped_recipes())
        values = load_toml(path)
        kind = _kind(path.stem, values)
        if encoder:
            set_value(values, f"{kind.encoder_key}={json.dumps(encoder, ensure_ascii=False)}")
        for override in overrides:
            set_value(values, override)
        return cls.from_values(path.stem, values)

    @classmethod
    def from_values(cls, name: str, values: Mapping[str, Any]) -> LinkingRecipe:
        """Make a recipe of plain values, checking every key and type."""
        kind = _kind(name, values)
        known = {"about", "kind", "config", "data"}
        if kind.has_encoder_table:
            known.add("encoder")
        for key in values:
            if key not in known:
                raise ConfigError(f"recipe {name}: unknown key {key!r}; {nearest(key, known)}")
        if kind.needs_encoder and not _table(values, kind.encoder_key.split(".")[0]):
            raise ConfigError(f"recipe {name}: missing key '{kind.encoder_key}'")
        encoder = _table(values, "encoder")
        return cls(
            name=name,
            kind=str(values["kind"]),
            about=str(values.get("about", "")),
            config=from_mapping(kind.config, _table(values, "config"), "config."),
            encoder=from_mapping(EncoderConfig, encoder, "encoder.") if encoder else None,
            data=from_mapping(DataConfig, _table(values, "data"), "data."),
        )

    def to_json(self) -> dict[str, Any]:
        """Give the whole configuration as plain values."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self), default=str))
        return plain


def shipped_recipes() -> dict[str, Path]:
    """Give the recipes that come with biograft, by name."""
    return {path.stem: path for path in sorted(_FOLDER.glob("*.toml"))}


def _kind(name: str, values: Mapping[str, Any]) -> RecipeKind:
    kind = values.get("kind")
    if kind is None:
        raise ConfigError(f"recipe {name}: missing key 'kind'; known: {', '.join(KINDS)}")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ConfigError(
            f"recipe {name}: no {KINDS.kind} is called {kind!r}; {nearest(str(kind), KINDS)}"
        )
    return KINDS.load(kind)


def _table(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = values.get(name, {})
    if not isinstance(table, Mapping):
        raise ConfigError(f"{name}: expected a table, found {table!r}")
    return table
