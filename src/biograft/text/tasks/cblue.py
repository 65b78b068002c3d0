"""CBLUE's dialogues as texts with classes: CHIP-MDCFNPC, and three tasks of IMCS-V2.

=============  ====================================================================================
``mdcfnpc``    a finding, marked in its turn, with the turn before and three after; its class
``imcs-dac``   a turn and its dialogue act
``imcs-sr``    a turn and its symptoms, as ``咳嗽|1``: any number of classes
``imcs-mrg``   a turn and the sections of the report that it is the source of: any number
=============  ====================================================================================

The context of a turn is the one before, since an answer alone (*没有*) says nothing. For reports
the classes come from the two references: a turn is the source of a section if it shares half of the
pairs of characters of the shorter one of both. The report is then made of whole turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from biograft.kb.sources.json_files import first_object, read_objects
from biograft.kb.sources.log import ReadLog
from biograft.text.formats.cblue import BAR, is_dialogues, read_dialogues, turns_of
from biograft.text.formats.format import MalformedError, field
from biograft.text.tasks.registry import ClassExample, TaskConfig, TaskFormat

_AFTER = 3
"""Turns that follow a finding, in which it may be answered."""
_SHARED = 0.5


def findings_of(dialogue: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number of the turn of each finding of a dialogue, and the finding."""
    for number, turn in enumerate(field(dialogue, "dialog_info", list)):
        for finding in field(turn, "ner", list, []):
            yield number, finding


def read_findings(config: TaskConfig, log: ReadLog) -> Iterator[ClassExample]:
    """Read the findings of CHIP-MDCFNPC, in the order of the file.

    Args:
        config: The file: JSON lines.
        log: Counts dialogues read and rejected.
    """
    for row in read_objects(config.path, log, config.encoding):
        try:
            examples = [_finding(row.value, *found) for found in findings_of(row.value)]
        except (MalformedError, LookupError, ValueError, TypeError, AttributeError) as error:
            log.reject(f"no dialogue with findings ({error})", row.line, row.text)
            continue
        yield from examples


def _finding(dialogue: dict[str, Any], number: int, finding: dict[str, Any]) -> ClassExample:
    turns = dialogue["dialog_info"]
    text = field(turns[number], "text", str)
    start, end = map(int, field(finding, "range", list))
    said = [
        f"{turn['sender']}：{field(turn, 'text', str)}" for turn in turns[number + 1 :][:_AFTER]
    ]
    marked = f"{turns[number]['sender']}：{text[:start]}【{text[start:end]}】{text[end:]}"
    before = "；".join(turn["text"] for turn in turns[max(0, number - 1) : number])
    name = finding.get("name") or text[start:end]
    label = finding.get("attr")
    return ClassExample(
        "；".join([marked, *said]),
        (label,) if label else (),
        f"{name}；{before}",
        id=f"{dialogue.get('dialog_id')}/{number}/{start}",
    )


def _dialogues(
    labels: Callable[[dict[str, Any], str, dict[str, Any]], tuple[str, ...]],
    *,
    multi: bool,
    report: bool = False,
) -> TaskFormat:
    """Return the format of dialogues whose turns are examples.

    Args:
        labels: Classes of a turn, by the turn, its text and its dialogue.
        multi: Whether a turn may have several.
        report: Whether what the patient wrote before is the first turn.
    """

    def read(config: TaskConfig, log: ReadLog) -> Iterator[ClassExample]:
        for row in read_dialogues(config.path, log, config.encoding):
            turns = turns_of(row, log)[0 if report else 1 :]
            try:
                found = [labels(turn.value, turn.text, row.value) for turn in turns]
            except (AttributeError, TypeError) as error:
                log.reject(f"no dialogue with answers ({error})", row.line, row.text)
                continue
            texts = [f"{turn.speaker}：{turn.text}" for turn in turns]
            for turn, text, before, each in zip(turns, texts, ["", *texts], found, strict=False):
                yield ClassExample(text, each, before, multi, turn.id)

    return TaskFormat("class", read, is_dialogues)


def _act(turn: dict[str, Any], text: str, dialogue: dict[str, Any]) -> tuple[str, ...]:
    act = turn.get("dialogue_act")
    return (str(act),) if act else ()


def _symptoms(turn: dict[str, Any], text: str, dialogue: dict[str, Any]) -> tuple[str, ...]:
    found = turn.get("local_implicit_info") or {}
    return tuple(f"{name}{BAR}{status}" for name, status in found.items())


def _sections(turn: dict[str, Any], text: str, dialogue: dict[str, Any]) -> tuple[str, ...]:
    own = set(pairwise(text))
    found = dict[str, None]()
    for report in dialogue.get("report") or ():
        for section, written in report.items():
            pairs = set(pairwise(written))
            if len(own & pairs) >= _SHARED * (min(len(own), len(pairs)) or 1):
                found[section] = None
    return tuple(found)


FINDINGS = TaskFormat(
    "class",
    read_findings,
    lambda probe: {"dialog_id", "dialog_info"} <= set(first_object(probe.text)),
)
ACTS = _dialogues(_act, multi=False)
SYMPTOMS = _dialogues(_symptoms, multi=True)
SECTIONS = _dialogues(_sections, multi=True, report=True)
