"""What a reader of one task format is, and what it is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from biograft.corpus.tasks.records import Example, kind_of
from biograft.errors import ConfigError, FormatError
from biograft.registry import Registry
from biograft.sources.format import Probe, find_format, look_into
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


TASK_FORMATS: Registry[TaskFormat] = Registry(
    "task format",
    {
        "cmedqq": (
            "biograft.corpus.tasks.chineseblue:CMEDQQ",
            "label, text, text (cMedQQ, cMedQNLI); tabs",
        ),
        "cmedqa": (
            "biograft.corpus.tasks.rows:CMEDQA",
            "0/1, question, answer; tabs, quoted as in CSV",
        ),
        "webmedqa": (
            "biograft.corpus.tasks.rows:WEBMEDQA",
            "id, 0/1, department, question, answer; tabs",
        ),
        "cmedir": (
            "biograft.corpus.tasks.chineseblue:CMEDIR",
            "searches and graded pages; JSON lines",
        ),
        "cmedtc": (
            "biograft.corpus.tasks.chineseblue:CMEDTC",
            "class, text (cMedTC, cMedIC); a tab",
        ),
        "hoc": ("biograft.corpus.tasks.blurb:HOC", "labels 0_1,1_0,..., sentence, id; tabs"),
        "bioasq": ("biograft.corpus.tasks.blurb:BIOASQ", "id, question, context, yes/no; tabs"),
        "ddi": ("biograft.corpus.tasks.ddi:FORMAT", "DDI 2013: XML, the published zip or a folder"),
        "chemprot": (
            "biograft.corpus.tasks.blurb:CHEMPROT",
            "text with << >> and [[ ]], label; JSON lines",
        ),
        "gad": (
            "biograft.corpus.tasks.blurb:GAD",
            "id, sentence with @GENE$ and @DISEASE$, label; tabs",
        ),
        "jsonl": ("biograft.corpus.tasks.jsonl:FORMAT", "biograft's own JSON lines, of any kind"),
        "table": (
            "biograft.corpus.tasks.table:FORMAT",
            "any CSV, TSV or JSON lines with a column mapping",
        ),
    },
)
_OPTIONS = ("columns", "part", "dev_list", "grouped")


@dataclass(frozen=True, slots=True)
class TaskSet:
    """The examples of a file, all of one kind, and the log of what was left out of it and why."""

    format: str
    kind: str
    examples: tuple[Example, ...]
    log: ReadLog


def sniff_task(path: Path) -> str:
    """Name the format of a task file by its content, where only one is possible."""
    problem = "the content fits no format, or several"
    return find_format(look_into(path), TASK_FORMATS, problem)


def resolve_task(config: TaskConfig) -> TaskConfig:
    """Complete a configuration by the format, and refuse options that mean nothing to it."""
    name = config.format or ("table" if config.columns else sniff_task(config.path))
    heeded = TASK_FORMATS.load(name).options
    defaults = {field.name: field for field in fields(TaskConfig)}
    for option in _OPTIONS:
        empty = getattr(config, option) in ({}, defaults[option].default)
        if not empty and option not in heeded:
            raise ConfigError(f"{option}: means nothing to the task format {name!r}; leave it out")
    return replace(config, format=name)


def read_examples(config: TaskConfig, log: ReadLog | None = None) -> Iterator[Example]:
    """Read a task file as a stream of examples; what is broken in it goes to the log."""
    config = resolve_task(config)
    reader = TASK_FORMATS.load(config.format)
    yield from reader.read(config, log if log is not None else ReadLog(config.path))


def read_task(config: TaskConfig) -> TaskSet:
    """Read a task file whole; one without any example is refused."""
    config = resolve_task(config)
    log = ReadLog(config.path)
    examples = tuple(read_examples(config, log))
    if not examples:
        reasons = ", ".join(f"{n:,} {reason}" for reason, n in log.rejected.counts.items())
        raise FormatError(
            f"no example of format {config.format!r} is left of {log.n_read:,} rows"
            + (f" ({reasons})" if reasons else ""),
            path=config.path,
            remedy="check the format",
        )
    return TaskSet(config.format, kind_of(examples[0]), examples, log)
