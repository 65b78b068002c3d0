"""Registries: a name maps to ``module:attribute`` and one line of help.

Listing the names imports nothing; an entry is imported when it is loaded. Other packages add
entries through an entry point group::

    [project.entry-points."biograft.objectives"]
    my_objective = "my_package.objectives:MyObjectiveConfig"

and a script or notebook adds one for its own process: ``@OBJECTIVES.register(name)``.
"""

from __future__ import annotations

import importlib
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from biograft.errors import ConfigError, NotFoundError, nearest

T = TypeVar("T")


def load_object(target: str) -> Any:
    """Import what ``module:attribute`` names."""
    module, _, attribute = target.partition(":")
    return attrgetter(attribute)(importlib.import_module(module))


@dataclass(frozen=True, slots=True)
class Entry:
    """Import path of a registered part, and one line of help."""

    target: str
    help: str
    package: str = ""
    """The package that adds the entry; empty: biograft."""
    value: Any = None
    """The thing itself, where this process registered it."""


class Registry(Generic[T]):
    """The named things of one kind, each imported on first use.

    Args:
        kind: What an entry is called in errors.
        entries: Target (``module:attribute``) and one line of help by name; importing waits for
            first use.
        group: Group of entry points by which installed packages add entries, read on first use.
        home: Package that the targets are relative to.
        layouts: Target of a function that makes an entry of a TOML file, whose path is then a name.
    """

    def __init__(
        self,
        kind: str,
        entries: Mapping[str, tuple[str, str]],
        *,
        group: str = "",
        home: str = "",
        layouts: str = "",
    ) -> None:
        self._read_layout = f"{home}.{layouts}" if layouts else ""
        self.kind, self.group = kind, group
        self._shipped = {
            name: Entry(f"{home}.{target}" if home else target, about)
            for name, (target, about) in entries.items()
        }

    @cached_property
    def _entries(self) -> dict[str, Entry]:
        return {**self._shipped, **(self._installed() if self.group else {})}

    def register(self, name: str) -> Callable[[T], T]:
        """Register a class or function for this process; a decorator.

        Args:
            name: Its name; one that is taken is replaced if this process registered it.
        """

        def add(thing: T) -> T:
            taken = self._entries.get(name)
            if taken is not None and taken.value is None:
                raise ConfigError(f"{self.kind} {name!r}: exists already; choose another name")
            target = f"{getattr(thing, '__module__', '')}:{getattr(thing, '__qualname__', name)}"
            about = (getattr(thing, "__doc__", None) or "").strip().partition("\n")[0]
            self._entries[name] = Entry(target, about, value=thing)
            return thing

        return add

    def _installed(self) -> dict[str, Entry]:
        """Read the entry points of the group; a name may be taken only once."""
        added: dict[str, Entry] = {}
        from importlib.metadata import entry_points  # slow to import

        for point in entry_points(group=self.group):
            package = point.dist.name if point.dist else "an installed package"
            other = self._shipped.get(point.name) or added.get(point.name)
            entry = Entry(f"{point.module}:{point.attr}", f"from the package {package}", package)
            if other is not None and other != entry:
                raise ConfigError(
                    f"package {package}: its {self.kind} {point.name!r} (entry point group "
                    f"{self.group}) has the name of one of {other.package or 'biograft'}; "
                    "uninstall the package, or rename the entry point"
                )
            added[point.name] = entry
        return added

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (self._is_layout(name) or name in self._entries)

    def _is_layout(self, name: str) -> bool:
        return bool(self._read_layout) and name.endswith(".toml")

    def help(self) -> dict[str, str]:
        """Return the line of help of every name."""
        return {name: entry.help for name, entry in self._entries.items()}

    def module(self, name: str) -> str:
        """Return the module that an entry is imported from; empty for a name that is not known."""
        return self._entries[name].target.partition(":")[0] if name in self._entries else ""

    def load_all(self) -> Iterator[tuple[str, T]]:
        """Import the entries in order; of other packages, those that fail are left out."""
        for name, entry in self._entries.items():
            try:
                yield name, self.load(name)
            except ConfigError as error:
                if not entry.package:
                    raise
                warnings.warn(str(error), stacklevel=2)

    def load(self, name: str) -> T:
        """Import the thing registered under a name, or make it of the layout in a TOML file."""
        if self._is_layout(name):
            return cast("T", load_object(self._read_layout)(Path(name)))
        if name not in self._entries:
            raise NotFoundError(f"no {self.kind} is called {name!r}; {nearest(name, self)}")
        entry = self._entries[name]
        if entry.value is not None:
            return cast("T", entry.value)
        if not entry.package:
            return cast("T", load_object(entry.target))
        try:
            return cast("T", load_object(entry.target))
        except Exception as error:  # whatever code of others raises
            raise ConfigError(
                f"package {entry.package}: its {self.kind} {name!r} cannot be loaded from "
                f"{entry.target} ({type(error).__name__}: {error}); fix or uninstall the package"
            ) from error


def lazify(
    package: str, *more: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Give ``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    The names are those that its ``TYPE_CHECKING`` block imports ``as`` themselves.

    Args:
        package: Name of the package, ``__name__``.
        more: Further names, which the package defines.
    """
    module = sys.modules[package]
    homes = _read_homes(module.__loader__.get_source(package))  # type: ignore[union-attr]
    names = sorted({*homes, *more})

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            value = getattr(importlib.import_module(homes[name]), name)
        except ModuleNotFoundError as error:
            from biograft.errors import missing_extra

            raise missing_extra(error, f"{package}.{name}") from error
        setattr(module, name, value)
        return value

    return load, lambda: names, names


_IMPORT = re.compile(r"^    from (\S+) import (\([^)]*\)|.*)$", re.MULTILINE)
"""An import of a ``TYPE_CHECKING`` block; importing ``ast`` would take longer than all else."""


def _read_homes(source: str) -> dict[str, str]:
    """Find the module of each name that a ``TYPE_CHECKING`` block imports as itself."""
    block = source.partition("\nif TYPE_CHECKING:\n")[2].partition("\n\n")[0]
    return {
        name: found[1]
        for found in _IMPORT.finditer(block)
        for name, alias in re.findall(r"(\w+) as (\w+)", found[2])
        if name == alias
    }
