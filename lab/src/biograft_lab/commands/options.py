"""Checks of options that several commands of the laboratory share."""

from __future__ import annotations

from collections.abc import Sequence

from biograft.errors import ConfigError


def refuse_repeated(what: str, values: Sequence[object], remedy: str = "name each once") -> None:
    """Refuse a value that is given twice."""
    for position, value in enumerate(values):
        if value in values[:position]:
            raise ConfigError(f"{what}: {value} is given twice; {remedy}")
