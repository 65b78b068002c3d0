"""Task files: examples as records (pairs, rankings, classes, relations), formats, settings."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeAlias

from biograft.errors import ConfigError, FormatError
from biograft.kb.sources.format import Probe, find_format, look_into
from biograft.kb.sources.json_files import first_object
from biograft.kb.sources.log import ReadLog
from biograft.registry import Registry
from biograft.text.documents import Mention


@dataclass(frozen=True, slots=True)
class PairExample:
    """Two texts and the label of their relation: the same question, an inference, ..."""

    first: str
    """The first text."""
    second: str
    """The second text."""
    label: str = ""
    """The label as written; empty if there is none."""
    id: str = ""
    """Id of the example; empty if it has none."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A candidate of a ranking."""

    text: str
    """Text of the candidate."""
    relevance: int = 0
    """0: no answer; above: an answer, the higher the better."""
    id: str = ""
    """Id of the candidate; empty if it has none."""


@dataclass(frozen=True, slots=True)
class RankingExample:
    """A question and the texts to rank for it, in the order of the file."""

    query: str
    """The question."""
    candidates: tuple[Answer, ...]
    """Texts to rank."""
    id: str = ""
    """Id of the question; empty if it has none."""

    @property
    def n_relevant(self) -> int:
        """The number of candidates that are answers."""
        return sum(answer.relevance > 0 for answer in self.candidates)

    @property
    def decidable(self) -> bool:
        """Whether there are both answers and other candidates, so that a ranking matters."""
        return 0 < self.n_relevant < len(self.candidates)


@dataclass(frozen=True, slots=True)
class ClassExample:
    """A text and its classes; the text may be a question about ``context``."""

    text: str
    """The text to classify."""
    labels: tuple[str, ...] = ()
    """One label, or any number if ``multi``; empty if unlabelled."""
    context: str = ""
    multi: bool = False
    """Whether this is multi-label classification."""
    id: str = ""
    """Id of the example; empty if it has none."""


@dataclass(frozen=True, slots=True)
class RelationExample:
    """A text with two mentions and the relation of their concepts."""

    text: str
    """Text with both mentions."""
    first: Mention
    """The mention that the relation starts from."""
    second: Mention
    """The mention that it leads to."""
    label: str = ""
    """Name of the relation; empty if unknown."""
    document: str = ""
    """Id of the document."""
    id: str = ""
    """Id of the example; empty if it has none."""


Example: TypeAlias = PairExample | RankingExample | ClassExample | RelationExample
KINDS: dict[str, type[Example]] = {
    "pair": PairExample,
    "ranking": RankingExample,
    "class": ClassExample,
    "relation": RelationExample,
}


def kind_of(example: Example) -> str:
    """Return the kind of an example.

    >>> kind_of(PairExample("a", "b"))
    'pair'
    """
    return next(name for name, record in KINDS.items() if isinstance(example, record))


def labels_of(example: Example) -> tuple[str, ...]:
    """Return the labels of an example; of a ranking, the relevance of each candidate."""
    if isinstance(example, ClassExample):
        return example.labels
    if isinstance(example, RankingExample):
        return tuple(str(answer.relevance) for answer in example.candidates)
    return (example.label,) if example.label else ()


def texts_of(example: Example) -> tuple[str, ...]:
    """Return the texts of an example that a model reads."""
    if isinstance(example, PairExample):
        return (example.first, example.second)
    if isinstance(example, RankingExample):
        return (example.query, *(answer.text for answer in example.candidates))
    if isinstance(example, ClassExample) and example.context:
        return (example.text, example.context)
    return (example.text,)


Offsets = tuple[int, int]
Mark = tuple[str, str]

INDICATED = {
    "": "ENTITY",
    **dict.fromkeys(("drug", "brand", "group", "drug_n"), "DRUG"),
}
"""BLURB's indicators of DDI types, and of unknown types; any other type is its own indicator."""


@dataclass(frozen=True, slots=True)
class Anonymised:
    """A text with indicators instead of two mentions, and their offsets.

    Overlapping mentions share one indicator, and so one span.
    """

    text: str
    """The text with indicators."""
    first: Offsets
    """Offsets of the first indicator."""
    second: Offsets
    """Offsets of the second indicator."""
    edits: tuple[tuple[Offsets, Offsets], ...]
    """The replacements: the span in the original text, and the span of the indicator."""

    def original(self, position: int) -> int:
        """Return the position of a character in the original text.

        All positions in an indicator map to the start of its mention.
        """
        shift = 0
        for (start, end), (new_start, new_end) in self.edits:
            if new_start <= position < new_end:
                return start
            if position >= new_end:
                shift = end - new_end
        return position + shift


def anonymise(example: RelationExample, names: Mapping[str, str] | None = None) -> Anonymised:
    """Replace both mentions by indicators; ``names`` maps types to indicators.

    A mention with gaps is replaced from its start to its end, as in BLURB.

    Args:
        example: The example.
        names: Indicator of each type; default: those of BLURB. A type without one is written in
            capitals.

    >>> text = "aspirin with warfarin"
    >>> first, second = Mention(0, 7, "aspirin", type="drug"), Mention(13, 21, "warfarin")
    >>> anonymise(RelationExample(text, first, second)).text
    '@DRUG$ with @ENTITY$'
    """
    names = INDICATED if names is None else names
    order = sorted((example.first, example.second), key=lambda mention: mention.start)
    indicators = [
        names.get(mention.type, mention.type.upper()) or INDICATED[""] for mention in order
    ]
    spans = [(mention.start, mention.end) for mention in order]
    if spans[1][0] < spans[0][1]:
        spans = [(spans[0][0], max(spans[0][1], spans[1][1]))]
        indicators = ["-".join(indicators)]
    parts, edits, position, length = [], [], 0, 0
    for (start, end), name in zip(spans, indicators, strict=True):
        between, indicator = example.text[position:start], f"@{name}$"
        begin = length + len(between)
        parts += [between, indicator]
        position, length = end, begin + len(indicator)
        edits.append(((start, end), (begin, length)))
    new = [edit[1] for edit in edits]
    first, second = (new[0], new[-1]) if order[0] is example.first else (new[-1], new[0])
    return Anonymised("".join([*parts, example.text[position:]]), first, second, tuple(edits))


def unmark(text: str, marks: Sequence[Mark]) -> tuple[str, Mention, Mention] | None:
    """Remove two pairs of marks from a text; None unless each pair occurs exactly once.

    Args:
        text: The marked text.
        marks: Text before and after each of the two mentions.

    >>> unmark("<< a >> and [[ b ]]", (("<< ", " >>"), ("[[ ", " ]]")))[0]
    'a and b'
    """
    cuts: list[Offsets] = []
    inner: list[Offsets] = []
    for opening, closing in marks:
        start = text.find(opening)
        # another closing mark may be text, as in "A >> B"
        end = text.find(closing, start + len(opening))
        if start < 0 or text.find(opening, start + 1) >= 0 or end <= start + len(opening):
            return None
        inner.append((start + len(opening), end))
        cuts += [(start, start + len(opening)), (end, end + len(closing))]
    cuts.sort()
    if any(cuts[k][1] > cuts[k + 1][0] for k in range(len(cuts) - 1)):
        return None
    plain, position = "", 0
    for start, end in cuts:
        plain += text[position:start]
        position = end
    plain += text[position:]
    first, second = (_without(cuts, span, plain) for span in inner)
    return plain, first, second


def _without(cuts: Sequence[Offsets], span: Offsets, plain: str) -> Mention:
    """Return the mention at a span after the cuts."""
    start, end = (
        bound - sum(cut_end - cut_start for cut_start, cut_end in cuts if cut_end <= bound)
        for bound in span
    )
    return Mention(start, end, plain[start:end])


SPLITS = ("train", "dev", "test")
_N_PROBED = 5


@dataclass(frozen=True, kw_only=True)
class TaskConfig:
    """A task file and the settings to read it with."""

    path: Path
    """The file."""
    format: str = ""
    """Name of the format, or a TOML file that declares one; empty: recognised by content."""
    encoding: str = "utf-8"
    """Encoding of the file."""
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
    """Reader that yields the examples of a file."""
    recognise: Callable[[Probe], bool] = lambda probe: False
    """Whether a file can only be of this format."""
    options: frozenset[str] = frozenset()
    """The optional settings that apply to this format."""


def by_object(fits: Callable[[Mapping[str, Any]], bool]) -> Callable[[Probe], bool]:
    """Return a recogniser that tests the first object of JSON lines, or of a JSON list."""
    return lambda probe: fits(first_object(probe.text))


def by_list(fits: Callable[[Mapping[str, Any]], bool]) -> Callable[[Probe], bool]:
    """Return a recogniser that tests the first object of a JSON list."""
    return lambda probe: probe.text.lstrip().startswith("[") and by_object(fits)(probe)


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
        "mdcfnpc": (
            "cblue:FINDINGS",
            "CHIP-MDCFNPC: findings in dialogues, and whether patients have them; JSON lines",
        ),
        "imcs-dac": ("cblue:ACTS", "IMCS-V2: the dialogue act of each turn"),
        "imcs-sr": ("cblue:SYMPTOMS", "IMCS-V2: the symptoms of each turn, and their status"),
        "imcs-mrg": ("cblue:SECTIONS", "IMCS-V2: the sections of the report that a turn gives"),
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
    """Name of the format."""
    kind: str
    """Kind of example, as ``ranking``."""
    examples: tuple[Example, ...]
    """Examples in the order of the file."""
    log: ReadLog
    """Number of rejected records by reason, with examples."""


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
    """Read a task file as a stream of examples; malformed records go to the log.

    Args:
        config: File, and how it is read.
        log: Counts records read, and rejected by reason.
    """
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
