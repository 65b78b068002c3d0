"""What a reader of one task format is, and what it is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from biograft.corpus.tasks.records import Example
from biograft.errors import ConfigError
from biograft.sources.format import Probe

if TYPE_CHECKING:
    from biograft.sources.log import ReadLog

PARTS = ("train", "dev", "test")
_LOOKED_AT = 5


@dataclass(frozen=True, kw_only=True)
class TaskConfig:
    """One task file to read, and how."""

    path: Path
    format: str = ""
    """Name of the reader; empty means: recognised by content."""
    encoding: str = "utf-8"
    columns: Mapping[str, str] = field(default_factory=dict)
    """For tables: which column (or key) holds what, as ``{"first": "q1", "label": "#3"}``."""
    part: str = ""
    """For a corpus that holds several: train, dev or test; empty means all there is."""
    dev_list: Path | None = None
    """For DDI: a table whose first column names pairs of the documents to keep for dev."""
    grouped: bool = False
    """For ChemProt: the groups that BLURB counts (CPR:3 ...) in place of single relations."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))
        if self.dev_list is not None:
            object.__setattr__(self, "dev_list", Path(self.dev_list))
        if self.part and self.part not in PARTS:
            raise ConfigError(f"part: {self.part!r} is not one of {', '.join(PARTS)}")


@dataclass(frozen=True, slots=True)
class TaskFormat:
    """A format of task files: the one object each reader module offers."""

    kind: str
    """The kind of its examples; empty where the file decides."""
    read: Callable[[TaskConfig, ReadLog], Iterator[Example]]
    recognise: Callable[[Probe], bool] = lambda probe: False
    """Whether what the probe shows can only be of this format."""
    options: frozenset[str] = frozenset()
    """Fields of the configuration that mean something to this reader alone."""


def by_lines(fits: Callable[[list[str]], bool]) -> Callable[[Probe], bool]:
    """Recognise files by the first lines that are not blank; there is at least one."""

    def recognise(probe: Probe) -> bool:
        lines = probe.lines(_LOOKED_AT)
        return bool(lines) and fits(lines)

    return recognise
