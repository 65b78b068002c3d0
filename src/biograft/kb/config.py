"""Configuration of a knowledge base build: sources, merging, types and name rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from biograft.config import Choice, Config, check_fields
from biograft.errors import ConfigError
from biograft.sources import SourceConfig

MERGES = ("none", "ids", "xrefs", "xrefs-all")


@dataclass(frozen=True, kw_only=True)
class NameRules:
    """Preprocessing of names; off by default. All three together are GenBioEL's rules."""

    lowercase: bool = False
    """Convert names to lower case."""
    strip_symbols: bool = False
    """Replace symbols such as hyphens and commas by spaces."""
    resolve_shared: bool = False
    """Keep a name that several concepts share only in the one with the fewest names."""


@dataclass(frozen=True, kw_only=True)
class BuildConfig(Config):
    """Configuration of a knowledge base build."""

    sources: tuple[SourceConfig, ...]
    merge: Annotated[str, Choice(*MERGES)] = "none"
    """Merge concepts of different sources that share alternate ids (``ids``) or also
    cross-references (``xrefs``), with ``xrefs-all`` also those that may mean something near: one of
    several to a vocabulary, or to a concept of other names. Equal primary ids are always one
    concept."""
    types: tuple[str, ...] = ()
    """Keep concepts that have one of these semantic types or a type below one."""
    languages: tuple[str, ...] = ()
    """Languages to take a concept's preferred name from, best first; default English."""
    names: NameRules = field(default_factory=NameRules)

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.sources:
            raise ConfigError("sources: expected at least one file or folder")
