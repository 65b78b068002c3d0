"""Registries: a name maps to ``module:attribute`` and one line of help.

Listing the names imports nothing; an entry is imported when it is asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from biograft.errors import NotFoundError, nearest

T = TypeVar("T")


def load_object(target: str) -> Any:
    """Import what ``module:attribute`` names."""
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a registered thing lives, and what it is for."""

    target: str
    help: str


class Registry(Generic[T]):
    """The named things of one kind, each loaded on first use."""

    def __init__(self, kind: str, entries: Mapping[str, tuple[str, str]]) -> None:
        self.kind = kind
        self._entries = {name: Entry(*entry) for name, entry in entries.items()}

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def help(self) -> dict[str, str]:
        """Give the line of help of every name."""
        return {name: entry.help for name, entry in self._entries.items()}

    def load(self, name: str) -> T:
        """Import the thing registered under a name."""
        if name not in self._entries:
            raise NotFoundError(f"no {self.kind} is called {name!r}; {nearest(name, self)}")
        return cast("T", load_object(self._entries[name].target))
