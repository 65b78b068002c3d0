"""Read a task file of any registered format as examples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path

from biograft.corpus.tasks.format import TaskConfig, TaskFormat
from biograft.corpus.tasks.records import Example, kind_of
from biograft.errors import ConfigError, FormatError
from biograft.registry import Registry
from biograft.sources.log import ReadLog
from biograft.sources.sniffing import find_format, look_into

TASK_FORMATS: Registry[TaskFormat] = Registry(
    "task format",
    {
        "cmedqq": (
            "biograft.corpus.tasks.labelled_pairs:FORMAT",
            "label, text, text (cMedQQ, cMedQNLI); tabs",
        ),
        "cmedqa": (
            "biograft.corpus.tasks.answers:CMEDQA",
            "0/1, question, answer; tabs, quoted as in CSV",
        ),
        "webmedqa": (
            "biograft.corpus.tasks.answers:WEBMEDQA",
            "id, 0/1, department, question, answer; tabs",
        ),
        "cmedir": ("biograft.corpus.tasks.cmedir:FORMAT", "searches and graded pages; JSON lines"),
        "cmedtc": (
            "biograft.corpus.tasks.labelled_texts:FORMAT",
            "class, text (cMedTC, cMedIC); a tab",
        ),
        "hoc": ("biograft.corpus.tasks.hoc:FORMAT", "labels 0_1,1_0,..., sentence, id; tabs"),
        "bioasq": ("biograft.corpus.tasks.bioasq:FORMAT", "id, question, context, yes/no; tabs"),
        "ddi": ("biograft.corpus.tasks.ddi:FORMAT", "DDI 2013: XML, the published zip or a folder"),
        "chemprot": (
            "biograft.corpus.tasks.chemprot:FORMAT",
            "text with << >> and [[ ]], label; JSON lines",
        ),
        "gad": (
            "biograft.corpus.tasks.gad:FORMAT",
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
