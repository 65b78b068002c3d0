"""Configuration of a verification: where ids and labels stand, and which ids are wanted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from biograft.config import Choice, Config, Option, check_fields, split_columns
from biograft.errors import ConfigError
from biograft.kb.config import NameLanguage, ValueSetOption

FORMATS = ("table", "json", "yaml", "obo", "turtle", "text")
"""Format by which a file is read, whatever its name."""


@dataclass(frozen=True, kw_only=True)
class VerifyConfig(Config):
    """Settings of a verification: columns, vocabularies, branch and strictness."""

    format: Annotated[
        str, Choice(*FORMATS, ""), Option("Format of the files; default: by name and content.")
    ] = ""
    columns: Annotated[
        Mapping[str, str],
        Option(
            "Column, key or dotted path of the id and of the label; default: pairs such as "
            "subject_id and subject_label.",
            metavar="id=hpo,label=term",
            parse=split_columns,
        ),
    ] = field(default_factory=dict)
    vocabularies: Annotated[
        tuple[str, ...],
        Option("Ids must be of these vocabularies.", "--vocabulary", metavar="HP,..."),
    ] = ()
    below: Annotated[
        tuple[str, ...],
        Option("Ids must be one of these concepts, or below one.", metavar="ID,..."),
    ] = ()
    value_set: ValueSetOption = ""
    """Value set to which every id must belong; empty: any concept."""
    name_language: NameLanguage = ""
    """Language of the labels; empty: any."""
    encoding: Annotated[str, Option("Encoding of the files.", metavar="NAME")] = "utf-8"

    def __post_init__(self) -> None:
        check_fields(self)
        if self.columns and ("id" not in self.columns or set(self.columns) - {"id", "label"}):
            raise ConfigError("columns: expected id=NAME, and label=NAME where there are labels")
