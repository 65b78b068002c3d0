"""Options of a command from configurations: a parameter that is one stands for its fields.

    def link(text: str, kb: Kb, linker: LinkerConfig) -> None: ...

gives ``biograft link`` the options ``-k``, ``--threshold`` and so on of ``LinkerConfig``, with
their sentences and defaults, and calls the function with the configuration, checked. ``Offered``
says which fields a command has, and with which defaults:

    def map_column(table: Path, linker: Annotated[LinkerConfig, Offered("k", "threshold", k=3)])

What is no configuration is described under ``Args`` of the docstring, which is the help of the
option; texts in its annotation are its flags and what stands for its value:

    depth: Annotated[int, "-k", "--depth", "K"] = 30
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import re
import typing
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from biograft.config import DescribedField, Option, described_fields, from_mapping, split_list
from biograft.errors import ConfigError


class Offered:
    """Fields of a configuration that a command offers, and defaults of its own."""

    def __init__(self, *names: str, without: tuple[str, ...] = (), **defaults: Any) -> None:
        """Choose fields.

        Args:
            names: Fields that are options; default: all that declare one.
            without: Fields that are none.
            defaults: Values in place of those of the configuration, also for other fields.
        """
        self.names, self.without, self.defaults = names, without, defaults

    def __contains__(self, name: str) -> bool:
        return name not in self.without and (not self.names or name in self.names)


class CommandGroup(typer.Typer):
    """A group of commands whose parameters may be configurations."""

    def __init__(self, help: str, **settings: Any) -> None:  # noqa: A002 - typer's word
        """Describe a group, which shows its help without arguments.

        Args:
            help: One sentence.
            settings: Further settings of ``typer.Typer``.
        """
        super().__init__(help=help, no_args_is_help=True, rich_markup_mode=None, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Add a command, as ``typer.Typer.command`` does.

        Args:
            name: Name of the command; default: that of the function.
            settings: Further settings of ``typer.Typer.command``.
        """
        add = super().command(name, **settings)

        def decorate(function: Any) -> Any:
            add(with_fields(function))
            return function

        return decorate


def with_fields(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command as typer takes it.

    Args:
        function: A command; a parameter annotated with a dataclass of described fields stands
            for their options, and the docstring describes the others.
    """
    signature = inspect.signature(function, eval_str=True)
    about, documented = _read_docstring(function)
    configs: dict[str, tuple[type[Any], Offered]] = {}
    parameters: dict[str, inspect.Parameter] = {}
    for parameter in signature.parameters.values():
        config, offered = _config_of(parameter.annotation)
        if config is None:
            parameters[parameter.name] = _described(parameter, documented)
            continue
        configs[parameter.name] = config, offered
        for field in _options_of(config, offered):
            parameters.setdefault(field.name, _option(field))

    @functools.wraps(function)
    def run(**values: Any) -> Any:
        made = {
            name: _configuration(config, offered, values)
            for name, (config, offered) in configs.items()
        }
        own = {name: value for name, value in values.items() if name in signature.parameters}
        return function(**own, **made)

    run.__doc__ = about
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters.values()]
    )
    return run


def _read_docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Return the text of a docstring and, by name, what it says of the parameters."""
    about, _, arguments = inspect.cleandoc(function.__doc__ or "").partition("\n\nArgs:\n")
    described = re.findall(r"^    (\w+): (.*(?:\n        .*)*)", arguments, re.MULTILINE)
    return about, {name: " ".join(text.split()) for name, text in described}


def _described(parameter: inspect.Parameter, documented: Mapping[str, str]) -> inspect.Parameter:
    """Return a parameter with its help, which is in its annotation or in the docstring."""
    kind: Any = parameter.annotation
    metadata: tuple[Any, ...] = ()
    if typing.get_origin(kind) is Annotated:
        kind, metadata = kind.__origin__, kind.__metadata__
    texts = [each for each in metadata if isinstance(each, str)]
    info = next((copy.copy(each) for each in metadata if not isinstance(each, str)), None)
    if info is None and (texts or parameter.name in documented):
        flags = [text for text in texts if text.startswith("-")]
        metavar = next((text for text in texts if not text.startswith("-")), None)
        info = typer.Option(*flags, metavar=metavar)
    if info is None:
        return parameter
    info.help = info.help or documented.get(parameter.name)
    return parameter.replace(annotation=Annotated[kind, info])


def _config_of(annotation: Any) -> tuple[type[Any] | None, Offered]:
    """Return the configuration that a parameter is, and which of its fields are options."""
    offered = Offered()
    if typing.get_origin(annotation) is Annotated:
        offered = next((a for a in annotation.__metadata__ if isinstance(a, Offered)), offered)
        annotation = annotation.__origin__
    return (annotation if dataclasses.is_dataclass(annotation) else None), offered  # type: ignore[return-value]


def _own_options(config: type[Any], offered: Offered) -> Iterator[DescribedField]:
    """Yield the fields that are options of a command, without those of nested configurations."""
    for field in described_fields(config):  # type: ignore[arg-type]
        if isinstance(field.doc, Option) and field.name in offered:
            yield field


def _options_of(config: type[Any], offered: Offered) -> Iterator[DescribedField]:
    """Yield the fields that are options of a command, those of nested configurations too."""
    for field in _own_options(config, offered):
        yield field._replace(default=offered.defaults.get(field.name, field.default))
    for name, inner in _nested(config):
        if name in offered:
            yield from _options_of(inner, offered)


def _nested(config: type[Any]) -> Iterator[tuple[str, type[Any]]]:
    """Yield the fields of a configuration that are configurations with options themselves."""
    hints = typing.get_type_hints(config)
    for field in dataclasses.fields(config):
        if dataclasses.is_dataclass(hints[field.name]):
            yield field.name, hints[field.name]


def _option(field: DescribedField) -> inspect.Parameter:
    """Return the parameter of typer for a field."""
    option: Any = field.doc
    flag = field.flag
    settings: dict[str, Any] = {"metavar": option.metavar or "|".join(field.choices) or None}
    kind, default = field.type, field.default
    if kind is int and field.range is not None:
        settings |= {"min": field.range.min, "max": field.range.max}
    if kind is bool:
        flag = f"{flag}/--no-{flag[2:]}" if default else flag
        settings = {}
    elif option.repeated:
        kind, default = list[str], list(default) or None
    elif kind not in (int, float, str, Path) or option.parse is not None:
        kind = str
        default = default if isinstance(default, str) else ",".join(default or ())
    if default is dataclasses.MISSING:
        default = inspect.Parameter.empty
    shown = default is not False and default not in ("", None, inspect.Parameter.empty)
    info = typer.Option(flag, help=option.help, show_default=shown, **settings)
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind if default is not None else kind | None, info],
    )


def _configuration(config: type[Any], offered: Offered, values: Mapping[str, Any]) -> Any:
    """Build a configuration from the values of options; an error names the option."""
    fields = {field.name: field for field in _options_of(config, offered)}
    try:
        return from_mapping(config, _table(config, offered, values))
    except ConfigError as error:
        name, colon, problem = str(error).partition(":")
        field = fields.get(name.rpartition(".")[2])
        if not colon or field is None:
            raise
        raise ConfigError(f"{field.flag}:{problem}") from error


def _table(config: type[Any], offered: Offered, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a configuration, nested as its fields are."""
    own = {field.name for field in dataclasses.fields(config)}
    table = {name: value for name, value in offered.defaults.items() if name in own}
    for field in _own_options(config, offered):
        value, option = values[field.name], typing.cast("Option", field.doc)
        if option.parse is not None:
            value = option.parse(value)
        elif typing.get_origin(field.type) is tuple:
            value = split_list(value) if isinstance(value, str) else tuple(value or ())
        table[field.name] = value
    for name, inner in _nested(config):
        if name in offered:
            table[name] = _table(inner, offered, values)
    return table
