"""Configuration: TOML files into frozen dataclasses, and the constraints of their fields."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import numbers
import tomllib
import types
import typing
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeAlias, TypeVar

from biograft.errors import ConfigError, nearest, shorten

T = TypeVar("T")


def load_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file; a syntax error is reported with its line."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from error


def to_toml(values: Mapping[str, Any], table: str = "") -> str:
    """Write plain values as TOML: first the values of a table, then the tables in it."""
    plain = {key: value for key, value in values.items() if not isinstance(value, Mapping)}
    lines = [f"{key} = {_toml_value(value)}" for key, value in plain.items()]
    if table and (lines or not values):
        lines.insert(0, f"[{table}]")
    parts = ["\n".join(lines)] if lines else []
    parts += [
        to_toml(value, f"{table}.{key}".lstrip("."))
        for key, value in values.items()
        if isinstance(value, Mapping)
    ]
    return "\n\n".join(parts)


def _toml_value(value: object) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml_value, value))}]"
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)


def set_value(values: MutableMapping[str, Any], override: str) -> None:
    """Set one value, given as TOML; anything that is not valid TOML is a string."""
    dotted, equals, text = override.partition("=")
    *tables, key = (part.strip() for part in dotted.split("."))
    if not equals or not key or not tables:
        raise ConfigError(f"--set: expected table.key=value, found {override!r}")
    table = values
    for name in tables:
        table = table.setdefault(name, {})
        if not isinstance(table, MutableMapping):
            raise ConfigError(f"--set {override}: {name} is no table")
    try:
        table[key] = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        table[key] = text
    except (ValueError, RecursionError) as error:  # too many digits, or too deep
        raise ConfigError(f"--set {shorten(override)}: {error}") from error


def from_mapping(cls: type[T], values: Mapping[str, Any], where: str = "") -> T:
    """Build a frozen dataclass from plain values, checking every key and type."""
    hints = _hints_of(cls)  # type: ignore[arg-type]
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


def _coerce(value: object, hint: Any, where: str) -> object:
    """Check one value against its annotation; lists become tuples, tables dataclasses."""
    if hint is Any:
        return value
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
    return _coerce_scalar(value, hint, where)


def _coerce_scalar(value: object, hint: type[object], where: str) -> object:
    if hint is Path and isinstance(value, str):
        return Path(value)
    if hint is float and type(value) is int:
        try:
            return float(value)
        except OverflowError:
            raise ConfigError(f"{where}: is beyond all numbers that can be computed with") from None
    if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
        raise ConfigError(f"{where}: expected {hint.__name__}, found {value!r}")
    return value


def _coerce_union(value: object, arguments: tuple[Any, ...], where: str) -> object:
    if value is None and type(None) in arguments:
        return None
    options = [hint for hint in arguments if hint is not type(None)]
    for hint in options[:-1]:
        try:
            return _coerce(value, hint, where)
        except ConfigError:
            continue
    return _coerce(value, options[-1], where)


def _coerce_list(value: object, hint: Any, where: str) -> tuple[object, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ConfigError(f"{where}: expected a list, found {value!r}")
    return tuple(_coerce(item, hint, f"{where}[{k}]") for k, item in enumerate(value))


class Constraint(Protocol):
    """A check of a field's value, given in ``Annotated``."""

    def check(self, field: str, value: object) -> None:
        """Raise ``ConfigError`` for a value that is not allowed."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """A finite number within bounds: from ``min`` to ``max``, or ``above`` and ``below`` them.

    Without bounds, any finite number.
    """

    min: float | None = None
    max: float | None = None
    above: float | None = None
    below: float | None = None

    def check(self, field: str, value: object) -> None:
        """Refuse a number out of range, infinity, nan, and what is no number."""
        if not (
            isinstance(value, numbers.Real) and not isinstance(value, bool) and self._has(value)
        ):
            raise ConfigError(f"{field}: expected {self}, found {value!r}")

    def _has(self, value: Any) -> bool:
        try:
            finite = math.isfinite(value)
        except OverflowError:  # an integer beyond all floats
            return False
        return (
            finite
            and (self.min is None or value >= self.min)
            and (self.max is None or value <= self.max)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )

    def __str__(self) -> str:
        """Describe the range in words."""
        low, high = (self.min, self.above), (self.max, self.below)
        if low == high == (None, None):
            return "a number"
        if high == (None, None):
            return f"at least {self.min}" if self.above is None else f"a number above {self.above}"
        if low == (None, None):
            return f"at most {self.max}" if self.below is None else f"a number below {self.below}"
        if self.above is not None:
            upper = f"and at most {self.max}" if self.below is None else f"and below {self.below}"
            return f"a number above {self.above} {upper}"
        upper = f"{self.max}" if self.below is None else f"below {self.below}"
        return f"a number from {self.min} to {upper}"


def AtLeast(bound: float) -> Range:  # noqa: N802 - reads as the constraint that it makes
    """Constrain a number to at least a bound."""
    return Range(min=bound)


def Above(bound: float) -> Range:  # noqa: N802 - reads as the constraint that it makes
    """Constrain a number to above a bound."""
    return Range(above=bound)


class Choice:
    """One of several words: ``Annotated[str, Choice("mean", "sum")]``."""

    __slots__ = ("known",)

    def __init__(self, *known: str) -> None:
        self.known = known

    def check(self, field: str, value: object) -> None:
        """Refuse a word that is none of those known."""
        check_choice(field, value, self.known)


Ratio: TypeAlias = Annotated[float, Range(min=0, max=1)]
"""A number from 0 to 1."""
Weight: TypeAlias = Annotated[float, AtLeast(0)]
"""Weight of a loss."""


class Config:
    """A configuration dataclass whose fields state their constraints.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Dropout(Config):
    ...     rate: Annotated[float, Range(min=0, below=1)] = 0.1
    >>> Dropout(rate=1.5)
    Traceback (most recent call last):
    biograft.errors.ConfigError: rate: expected a number from 0 to below 1, found 1.5

    A subclass that checks more in ``__post_init__`` calls :func:`check_fields` first.
    """

    __slots__ = ()

    def __post_init__(self) -> None:
        check_fields(self)


def check_fields(config: Any, prefix: str = "") -> None:
    """Check the fields of a dataclass against the constraints of their annotations."""
    for name, hint in _constrained_fields(type(config)):  # type: ignore[arg-type]
        _check_value(getattr(config, name), hint, f"{prefix}{name}")


@functools.cache
def _hints_of(cls: type[Any]) -> dict[str, Any]:
    return typing.get_type_hints(cls)


@functools.cache
def _constrained_fields(cls: type[Any]) -> tuple[tuple[str, Any], ...]:
    """List the constrained fields; one overridden with a plain type keeps its constraint."""
    found: dict[str, Any] = {}
    for base in cls.__mro__:
        if dataclasses.is_dataclass(base):
            hints = typing.get_type_hints(base, include_extras=True)
            plain = typing.get_type_hints(base)
            for name in (field.name for field in dataclasses.fields(base)):
                if hints[name] != plain[name]:
                    found.setdefault(name, hints[name])
    return tuple((name, found[name]) for name in found)


def _check_value(value: Any, hint: Any, where: str) -> None:
    """Check a value, or each item of a tuple; ``None`` passes where the type allows it."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        for constraint in hint.__metadata__:
            constraint.check(where, value)
        _check_value(value, arguments[0], where)
    elif origin in (typing.Union, types.UnionType) and value is not None:
        for option in arguments:
            _check_value(value, option, where)
    elif origin is tuple:
        for k, item in enumerate(value):
            _check_value(item, arguments[0], f"{where}[{k}]")


def check_choice(field: str, value: object, known: Iterable[str]) -> None:
    """Refuse a word that is none of those known."""
    if value not in (names := tuple(known)):
        raise ConfigError(
            f"{field}: expected one of {', '.join(names)}, found {value!r}; "
            f"{nearest(str(value), names)}"
        )
