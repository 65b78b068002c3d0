"""Configuration of a knowledge base build: sources, merging, types and name rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from biograft.config import Choice, Config, Option, check_fields
from biograft.errors import ConfigError
from biograft.kb.names import language_code
from biograft.kb.sources import SourceConfig
from biograft.kb.sources.format import KeptLanguages

NameLanguage = Annotated[
    str,
    Option(
        "Give the names of concepts in this language, where they have one; default: their "
        "preferred names.",
        "--name-lang",
        metavar="zh",
        parse=language_code,
    ),
]
ValueSetOption = Annotated[
    str,
    Option(
        "Concepts of this value set only: a file (FHIR ValueSet, ATLAS concept set, ids), or an "
        "expression such as '<< ID'.",
        metavar="VALUE_SET",
    ),
]
MERGES = ("none", "ids", "xrefs", "xrefs-all", "names")


@dataclass(frozen=True, kw_only=True)
class NameRules:
    """Preprocessing of names; off by default. All three together are GenBioEL's rules."""

    lowercase: Annotated[bool, Option("Lowercase names.")] = False
    strip_symbols: Annotated[
        bool, Option("Replace symbols in names, such as hyphens and commas, by spaces.")
    ] = False
    resolve_shared: Annotated[
        bool,
        Option("Keep a name shared by several concepts only in the one with the fewest names."),
    ] = False


ALL_SOURCES, FIRST_SOURCE = "all", "first"
CONCEPTS = (ALL_SOURCES, FIRST_SOURCE)


@dataclass(frozen=True, kw_only=True)
class BuildConfig(Config):
    """Configuration of a knowledge base build."""

    sources: tuple[SourceConfig, ...]
    """Files and folders to read, in order of preference."""
    merge: Annotated[
        str,
        Choice(*MERGES),
        Option(
            "Merge concepts of several sources by alternate ids, or by cross-references too: by "
            "those that are one to one to a concept that shares a name, or by all that are one to "
            "one between two sources; or by equal names too (names). Equal primary ids are always "
            "one concept."
        ),
    ] = "none"
    concepts: Annotated[
        str,
        Choice(*CONCEPTS),
        Option(
            "Keep the concepts of all sources, or those of the first alone; by --merge the others "
            "add names to them."
        ),
    ] = ALL_SOURCES
    types: Annotated[
        tuple[str, ...],
        Option("Keep concepts of these semantic types, or below.", metavar="T047,..."),
    ] = ()
    languages: KeptLanguages = ()
    """Languages to take a concept's preferred name from, best first; default English."""
    names: NameRules = field(default_factory=NameRules)
    """Rules for the names that are kept."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.sources:
            raise ConfigError("sources: expected at least one file or folder")
