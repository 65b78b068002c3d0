"""Lazy imports: the public names of a package, loaded on first use (PEP 562).

A package lists its public names once, in the ``if TYPE_CHECKING:`` block of its ``__init__``::

    if TYPE_CHECKING:
        from biograft.nn.encoder import TextEncoder as TextEncoder

    __getattr__, __dir__, __all__ = lazify(__name__)

Type checkers read the block as it stands; at run time each name is imported when it is asked for.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from collections.abc import Callable
from typing import Any


def lazify(
    package: str, *more: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Give ``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    The names are those that its ``TYPE_CHECKING`` block imports ``as`` themselves, and ``more``
    that it defines.
    """
    module = sys.modules[package]
    homes = _read_homes(inspect.getsource(module))
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


def _read_homes(source: str) -> dict[str, str]:
    """Find the module of each name that a ``TYPE_CHECKING`` block imports as itself."""
    return {
        alias.name: node.module
        for block in ast.parse(source).body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
        if alias.asname == alias.name
    }
