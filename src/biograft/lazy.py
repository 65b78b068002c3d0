"""Public names of a package that are loaded on first use (PEP 562), to keep imports light."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def load_on_use(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Give a ``__getattr__`` for a package whose names live in other modules."""

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(homes[name]), name)

    return load
