"""What a build is told: its sources, and what to do with what they say."""

from __future__ import annotations

from dataclasses import dataclass, field

from biograft.errors import ConfigError
from biograft.sources import SourceConfig

MERGES = ("none", "ids", "xrefs")


@dataclass(frozen=True, kw_only=True)
class NameRules:
    """What to do to names; by default nothing. All three together are GenBioEL's rules."""

    lowercase: bool = False
    """Lower the case."""
    strip_symbols: bool = False
    """Turn symbols such as hyphens and commas into blanks."""
    resolve_shared: bool = False
    """Keep a name that several concepts share only in the one with the fewest names."""


@dataclass(frozen=True, kw_only=True)
class BuildConfig:
    """A build of a knowledge base."""

    sources: tuple[SourceConfig, ...]
    merge: str = "none"
    """Unite concepts of different sources that share alternate ids (``ids``) or also
    cross-references (``xrefs``). Equal primary ids are always one concept."""
    types: tuple[str, ...] = ()
    """Keep concepts that have one of these semantic types or a type below one."""
    languages: tuple[str, ...] = ()
    """In which language a concept's own name is preferred, best first; default English."""
    names: NameRules = field(default_factory=NameRules)

    def __post_init__(self) -> None:
        if not self.sources:
            raise ConfigError("sources: expected at least one file or folder")
        if self.merge not in MERGES:
            raise ConfigError(f"merge: expected one of {', '.join(MERGES)}, found {self.merge!r}")
