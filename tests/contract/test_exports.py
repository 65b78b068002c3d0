"""The names that packages export: their lists are golden, and every name can be imported."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil

import pytest

import biograft

PACKAGES = [
    "biograft",
    *(m.name for m in pkgutil.walk_packages(biograft.__path__, "biograft.") if m.ispkg),
]


def exported(package):
    """Return the names that a package imports `as` themselves, or lists in ``__all__``."""
    module = importlib.import_module(package)
    nodes = ast.walk(ast.parse(inspect.getsource(module)))
    renamed = {
        alias.name
        for node in nodes
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    }
    return sorted(renamed | set(getattr(module, "__all__", ())))


@pytest.mark.parametrize("package", PACKAGES)
def test_names(package, golden):
    names = exported(package)
    golden("exports", package, names)
    for name in names:
        assert getattr(importlib.import_module(package), name) is not None
