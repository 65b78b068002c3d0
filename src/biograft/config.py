"""Configuration: TOML files into frozen dataclasses, and what each of their fields declares.

A field is declared once: its type, the values allowed, its default and one sentence. The key of a
TOML file, the keyword in Python, the option of a command, the field of a request and the row of the
documentation are made from that.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import numbers
import re
import tomllib
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Protocol, TypeAlias, TypeVar

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
    """Write plain values as TOML: first the values of a table, then the tables in it.

    Args:
        values: Plain values; mappings are tables.
        table: Name of the table, for one within another.
    """
    plain = {key: value for key, value in values.items() if not isinstance(value, Mapping)}
    lines = [f"{_toml_key(key)} = {_toml_value(value)}" for key, value in plain.items()]
    if table and (lines or not values):
        lines.insert(0, f"[{table}]")
    parts = ["\n".join(lines)] if lines else []
    parts += [
        to_toml(value, f"{table}.{_toml_key(key)}".lstrip("."))
        for key, value in values.items()
        if isinstance(value, Mapping)
    ]
    return "\n\n".join(parts)


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[\w-]+", key, re.ASCII) else json.dumps(key, ensure_ascii=False)


def _toml_value(value: object) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml_value, value))}]"
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)


def set_value(values: MutableMapping[str, Any], override: str) -> None:
    """Set one value, given as TOML; anything that is not valid TOML is a string.

    Args:
        values: Values, changed in place.
        override: ``table.key=value``; ``-table.key`` leaves a value or a whole table out.
    """
    if override.startswith("-"):
        remove_value(values, override[1:], f"--set {override}")
        return
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


def remove_value(values: MutableMapping[str, Any], dotted: str, where: str = "without") -> None:
    """Remove a value or a whole table by its dotted key.

    Args:
        values: Values of a recipe, changed in place.
        dotted: The key, as ``table.key``.
        where: Name of the setting in the error.
    """
    *tables, key = dotted.split(".")
    table: Any = values
    for name in tables:
        table = table.get(name) if isinstance(table, Mapping) else None
    if not isinstance(table, MutableMapping) or key not in table:
        raise ConfigError(f"{where}: there is no {dotted!r}")
    del table[key]


def from_mapping(cls: type[T], values: Mapping[str, Any], where: str = "") -> T:
    """Build a frozen dataclass from plain values, checking every key and type.

    Args:
        cls: The dataclass.
        values: Values by field; tables for fields that are dataclasses.
        where: Text before the key in errors, such as ``loss.``.
    """
    checked = _checked(cls, values, where)
    missing = [
        field.name
        for field in dataclasses.fields(cls)  # type: ignore[arg-type]
        if field.name not in checked
        and field.default is dataclasses.MISSING
        and field.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise ConfigError(f"{_table_of(where)}missing key {missing[0]!r}")
    return cls(**checked)


def changed(config: T, values: Mapping[str, Any]) -> T:
    """Return a configuration with some values changed, checked as those of a file are.

    Args:
        config: A frozen dataclass.
        values: New values by field.
    """
    checked: Any = _checked(type(config), values, "")
    return dataclasses.replace(config, **checked)  # type: ignore[type-var]


def _checked(cls: type[Any], values: Mapping[str, Any], where: str) -> dict[str, object]:
    """Return values with the types of the fields; an unknown key is an error."""
    hints = _hints_of(cls)  # type: ignore[arg-type]
    known = [field.name for field in dataclasses.fields(cls)]
    for key in values:
        if key not in known:
            raise ConfigError(f"{_table_of(where)}unknown key {key!r}; {nearest(key, known)}")
    return {key: _coerce(value, hints[key], f"{where}{key}") for key, value in values.items()}


def _table_of(where: str) -> str:
    return where.removesuffix(".") + ": " if where.endswith(".") else where


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


@dataclasses.dataclass(frozen=True, slots=True)
class Doc:
    """The sentence that describes a field: ``Annotated[int, Doc("Number of texts.")]``."""

    help: str


@dataclasses.dataclass(frozen=True, slots=True)
class Option(Doc):
    """The sentence of a field that commands offer as an option.

    >>> k: Annotated[int, AtLeast(1), Option("Candidates per mention.", "-k", "N")] = 5
    """

    flag: str = ""
    """Name of the option; default: that of the field, also with ``--no-`` where it is true."""
    metavar: str = ""
    """The value in the help; default: the words of a choice, else by the type."""
    parse: Callable[[str], Any] | None = None
    """Function from the text that is given to the value; default: by the type, lists at commas."""
    repeated: bool = False
    """Whether a list is given by repeating the option."""


def split_columns(value: str | None) -> dict[str, str]:
    """Parse an option that names the column of each role.

    >>> split_columns("first=q1, label=#3")
    {'first': 'q1', 'label': '#3'}
    """
    columns = {}
    for item in split_list(value):
        role, equals, column = (part.strip() for part in item.partition("="))
        if not (role and equals and column):
            raise ConfigError(f"--columns: expected role=column, found {item!r}")
        columns[role] = column
    return columns


class DescribedField(NamedTuple):
    """A field with what it declares."""

    name: str
    type: Any
    """Without constraints, and without ``None``."""
    default: Any
    doc: Doc
    choices: tuple[str, ...] = ()
    """Words that are allowed; empty: any value of the type."""
    range: Range | None = None
    """Numbers that are allowed."""

    @property
    def flag(self) -> str:
        """Name of the option; that of the field where the declaration names none."""
        named = self.doc.flag if isinstance(self.doc, Option) else ""
        return named or f"--{self.name.replace('_', '-')}"


@functools.cache
def described_fields(config: type[Any]) -> tuple[DescribedField, ...]:
    """Return the fields of a configuration that have a sentence, in their order.

    Args:
        config: A dataclass.
    """
    hints = typing.get_type_hints(config, include_extras=True)
    found = []
    for field in dataclasses.fields(config):
        known = list(_metadata(hints[field.name]))
        doc = next((each for each in known if isinstance(each, Doc)), None)
        if doc is None:
            continue
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        choices = next((each.known for each in known if isinstance(each, Choice)), ())
        allowed = next((each for each in known if isinstance(each, Range)), None)
        kind = _plain(hints[field.name])
        found.append(DescribedField(field.name, kind, default, doc, choices, allowed))
    return tuple(found)


def _metadata(hint: Any) -> Iterator[Any]:
    """Yield what the annotation of a field declares, in its options too (``X | None``)."""
    origin = typing.get_origin(hint)
    if origin is Annotated:
        yield from hint.__metadata__
        yield from _metadata(hint.__origin__)
    elif origin in (typing.Union, types.UnionType):
        for option in typing.get_args(hint):
            yield from _metadata(option)


def _plain(hint: Any) -> Any:
    """Return the type in an annotation, without constraints and without ``None``."""
    origin = typing.get_origin(hint)
    if origin is Annotated:
        return _plain(hint.__origin__)
    if origin in (typing.Union, types.UnionType):
        options = [each for each in typing.get_args(hint) if each is not type(None)]
        return _plain(options[0]) if len(options) == 1 else hint
    return hint


class Constraint(Protocol):
    """A check of a field's value, given in ``Annotated``."""

    def check(self, field: str, value: object) -> None:
        """Raise ``ConfigError`` for a value that is not allowed.

        Args:
            field: Name of the field in the error.
            value: The value.
        """


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
        """Refuse a number out of range, infinity, nan, and what is no number.

        Args:
            field: Name of the field in the error.
            value: The value.
        """
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
        """Refuse a word that is none of those known.

        Args:
            field: Name of the field in the error.
            value: The value.
        """
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
    """Check the fields of a dataclass against the constraints of their annotations.

    Args:
        config: A dataclass.
        prefix: Text before a field in errors.
    """
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
        if value is None and type(None) in typing.get_args(hint.__origin__):
            return
        for constraint in hint.__metadata__:
            if not isinstance(constraint, Doc):
                constraint.check(where, value)
        _check_value(value, arguments[0], where)
    elif origin in (typing.Union, types.UnionType) and value is not None:
        for option in arguments:
            _check_value(value, option, where)
    elif origin is tuple:
        for k, item in enumerate(value):
            _check_value(item, arguments[0], f"{where}[{k}]")


def check_choice(field: str, value: object, known: Iterable[str]) -> None:
    """Refuse a word that is none of those known.

    Args:
        field: Name of the field in the error.
        value: The value.
        known: Words that are allowed.
    """
    if value not in (names := tuple(known)):
        raise ConfigError(
            f"{field}: expected one of {', '.join(names)}, found {value!r}; "
            f"{nearest(str(value), names)}"
        )


def split_list(value: str | None) -> tuple[str, ...]:
    """Split a comma-separated option; whitespace and empty items are dropped.

    >>> split_list("Disease, Finding,")
    ('Disease', 'Finding')
    """
    return tuple(item.strip() for item in (value or "").split(",") if item.strip())
