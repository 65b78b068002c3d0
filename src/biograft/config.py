"""TOML files into frozen dataclasses: unknown keys and wrong types are refused by name."""

from __future__ import annotations

import dataclasses
import tomllib
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from biograft.errors import ConfigError, nearest

T = TypeVar("T")


def load_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file, naming the place of a syntax error."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from error


def set_value(values: dict[str, Any], override: str) -> None:
    """Set one value, written as in TOML; what is none there is a text."""
    dotted, equals, text = override.partition("=")
    *tables, key = (part.strip() for part in dotted.split("."))
    if not equals or not key or not tables:
        raise ConfigError(f"--set: expected table.key=value, found {override!r}")
    table = values
    for name in tables:
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            raise ConfigError(f"--set {override}: {name} is no table")
    try:
        table[key] = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        table[key] = text


def find_recipe(name_or_path: str | Path, shipped: Mapping[str, Path]) -> Path:
    """Find a recipe: a TOML file, or one of those that come with biograft by its name."""
    path = Path(name_or_path)
    if path.suffix == ".toml":
        return path
    if str(name_or_path) not in shipped:
        raise ConfigError(
            f"no recipe is called {str(name_or_path)!r}; {nearest(str(name_or_path), shipped)}, "
            "or give a .toml file"
        )
    return shipped[str(name_or_path)]


def from_mapping(cls: type[T], values: Mapping[str, Any], where: str = "") -> T:
    """Build a frozen dataclass from plain values, checking every key and type."""
    hints = typing.get_type_hints(cls)
    known = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
    table = where.removesuffix(".") + ": " if where.endswith(".") else where
    for key in values:
        if key not in known:
            raise ConfigError(f"{table}unknown key {key!r}; {nearest(key, known)}")
    checked = {key: _coerce(value, hints[key], f"{where}{key}") for key, value in values.items()}
    missing = [
        field.name
        for field in dataclasses.fields(cls)  # type: ignore[arg-type]
        if field.name not in checked
        and field.default is dataclasses.MISSING
        and field.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise ConfigError(f"{table}missing key {missing[0]!r}")
    return cls(**checked)


def _coerce(value: Any, hint: Any, where: str) -> Any:
    """Check one value against its annotation; lists become tuples, tables dataclasses."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _coerce_union(value, arguments, where)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        if not isinstance(value, Mapping):
            raise ConfigError(f"{where}: expected a table, found {value!r}")
        return from_mapping(hint, value, f"{where}.")
    if origin is tuple:
        return _coerce_list(value, arguments[0], where)
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            raise ConfigError(f"{where}: expected a table, found {value!r}")
        return {key: _coerce(item, arguments[1], f"{where}.{key}") for key, item in value.items()}
    if hint is Path and isinstance(value, str):
        return Path(value)
    if hint is float and type(value) is int:
        return float(value)
    if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
        raise ConfigError(f"{where}: expected {hint.__name__}, found {value!r}")
    return value


def _coerce_union(value: Any, arguments: tuple[Any, ...], where: str) -> Any:
    if value is None and type(None) in arguments:
        return None
    options = [hint for hint in arguments if hint is not type(None)]
    for hint in options[:-1]:
        try:
            return _coerce(value, hint, where)
        except ConfigError:
            continue
    return _coerce(value, options[-1], where)


def _coerce_list(value: Any, hint: Any, where: str) -> tuple[Any, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ConfigError(f"{where}: expected a list, found {value!r}")
    return tuple(_coerce(item, hint, f"{where}[{k}]") for k, item in enumerate(value))


def check_choice(field: str, value: str, known: tuple[str, ...]) -> None:
    """Refuse a word that is none of those known."""
    if value not in known:
        raise ConfigError(
            f"{field}: expected one of {', '.join(known)}, found {value!r}; {nearest(value, known)}"
        )


def check_weight(weight: float) -> None:
    """Refuse a weight that is negative or no number."""
    if not 0 <= weight < float("inf"):
        raise ConfigError(f"weight: expected a number of at least 0, found {weight}")
