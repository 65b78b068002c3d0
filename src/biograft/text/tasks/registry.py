"""Registry of task formats; read a task file with its settings."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from biograft.errors import ConfigError, FormatError
from biograft.kb.sources.format import Probe, find_format, look_into
from biograft.kb.sources.log import ReadLog
from biograft.registry import Registry
from biograft.text.tasks.records import Example, kind_of

SPLITS = ("train", "dev", "test")
_N_PROBED = 5


@dataclass(frozen=True, kw_only=True)
class TaskConfig:
    """A task file and the settings to read it with."""

    path: Path
    format: str = ""
    """Name of the format, or a TOML file that declares one; empty: recognised by content."""
    encoding: str = "utf-8"
    columns: Mapping[str, str] = field(default_factory=dict)
    """For tables: the column (or key) of each role, as ``{"first": "q1", "label": "#3"}``."""
    split: str = ""
    """For a corpus with several splits: train, dev or test; empty: all."""
    dev_list: Path | None = None
    """For DDI: a table whose first column names pairs of the dev documents."""
    grouped: bool = False
    """For ChemProt: use BLURB's relation groups (CPR:3 ...) as labels."""
    schema: Path | None = None
    """For CMeIE: the schema file. Labels then have the types of subject and object, too."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))
        if self.dev_list is not None:
            object.__setattr__(self, "dev_list", Path(self.dev_list))
        if self.schema is not None:
            object.__setattr__(self, "schema", Path(self.schema))
        if self.split and self.split not in SPLITS:
            raise ConfigError(f"split: {self.split!r} is not one of {', '.join(SPLITS)}")


@dataclass(frozen=True, slots=True)
class TaskFormat:
    """A format of task files; each reader module defines one or more."""

    kind: str
    """The kind of its examples; empty if it depends on the file."""
    read: Callable[[TaskConfig, ReadLog], Iterator[Example]]
    recognise: Callable[[Probe], bool] = lambda probe: False
    """Whether a file can only be of this format."""
    options: frozenset[str] = frozenset()
    """The optional settings that apply to this format."""


def by_lines(fits: Callable[[list[str]], bool]) -> Callable[[Probe], bool]:
    """Return a recogniser that tests the first non-empty lines, of which there is at least one."""

    def recognise(probe: Probe) -> bool:
        lines = probe.lines(_N_PROBED)
        return bool(lines) and fits(lines)

    return recognise


DATA_SETS_FILE = Path(__file__).with_name("data_sets.toml")
"""Declares the layouts of published data sets."""

TASK_FORMATS: Registry[TaskFormat] = Registry(
    "task format",
    {
        **{
            name: (f"table:DATA_SETS.{name}", each["about"])
            for name, each in tomllib.loads(DATA_SETS_FILE.read_text("utf-8")).items()
        },
        "ddi": ("ddi:FORMAT", "DDI 2013: XML, the published zip or a folder"),
        "cmeie": ("cmeie:FORMAT", "text, spo_list (CMeIE, CHIP-RE); JSON lines"),
        "cmdd-replies": (
            "cmdd:REPLIES",
            "dialogues: which sentence is the doctor's reply; JSON lines",
        ),
        "cmdd-symptoms": ("cmdd:SYMPTOMS", "dialogues: the standard names of symptoms; JSON lines"),
        "jsonl": ("jsonl:FORMAT", "biograft's own JSON lines, of any kind"),
        "table": ("table:FORMAT", "any CSV, TSV or JSON lines with a column mapping"),
    },
    group="biograft.task_formats",
    home="biograft.text.tasks",
    layouts="table:read_layout",
)
_OPTIONS = ("columns", "split", "dev_list", "grouped", "schema")


@dataclass(frozen=True, slots=True)
class TaskSet:
    """The examples of a file, all of one kind, and the log of rejected records."""

    format: str
    kind: str
    examples: tuple[Example, ...]
    log: ReadLog


def sniff_task(path: Path) -> str:
    """Return the format of a task file by its content, if it can only be one."""
    problem = "the content fits no format, or several"
    return find_format(look_into(path), TASK_FORMATS, problem)


def resolve_task(config: TaskConfig) -> TaskConfig:
    """Complete settings with the format, and check that all options apply to it."""
    name = config.format or ("table" if config.columns else sniff_task(config.path))
    relevant = TASK_FORMATS.load(name).options
    defaults = {field.name: field for field in fields(TaskConfig)}
    for option in _OPTIONS:
        empty = getattr(config, option) in ({}, defaults[option].default)
        if not empty and option not in relevant:
            raise ConfigError(f"{option}: does not apply to the task format {name!r}; leave it out")
    return replace(config, format=name)


def read_examples(config: TaskConfig, log: ReadLog | None = None) -> Iterator[Example]:
    """Read a task file as a stream of examples; malformed records go to the log."""
    config = resolve_task(config)
    read = TASK_FORMATS.load(config.format).read
    yield from read(config, log if log is not None else ReadLog(config.path))


def read_task(config: TaskConfig) -> TaskSet:
    """Read a whole task file; raise a ``FormatError`` if it has no example."""
    config = resolve_task(config)
    log = ReadLog(config.path)
    examples = tuple(read_examples(config, log))
    if not examples:
        reasons = ", ".join(f"{n:,} {reason}" for reason, n in log.rejected.counts.items())
        raise FormatError(
            f"{log.n_read:,} rows have no valid example of format {config.format!r}"
            + (f" ({reasons})" if reasons else ""),
            path=config.path,
            remedy="check the format",
        )
    return TaskSet(config.format, kind_of(examples[0]), examples, log)
