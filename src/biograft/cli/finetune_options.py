"""What ``biograft finetune`` was told, for whichever kind of recipe runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from biograft.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetuneOptions:
    """The options of the command, by their names; what was not given is empty."""

    recipe: Path
    out: Path
    kb: Path | None
    train: Sequence[str]
    dev: Sequence[str]
    test: Sequence[str]
    known: Sequence[str]
    format: str
    types: tuple[str, ...]
    index: Path | None
    encoder: str
    model: Path | None
    seeds: tuple[str, ...]
    changes: Sequence[str]
    resume: bool
    overwrite: bool
    as_json: bool
    quiet: bool

    def refuse(self, kind: str, *names: str) -> None:
        """Refuse options that mean nothing to a kind of recipe."""
        for name in names:
            if getattr(self, name):
                raise ConfigError(f"--{name}: a recipe of kind {kind!r} has no use for it")
