"""BLURB task files: readers of GAD, HoC, BioASQ and ChemProt.

Relation files have their mentions replaced by indicators (``@GENE$``, ``@DISEASE$``), which become
the spans; two overlapping mentions share one indicator, such as ``@DRUG-DRUG$``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from biograft.kb.sources.json_files import read_objects
from biograft.text.documents import Mention
from biograft.text.tasks.records import ClassExample, RelationExample, unmark
from biograft.text.tasks.registry import TaskConfig, TaskFormat, by_lines
from biograft.text.tasks.rows import read_tabbed

if TYPE_CHECKING:
    from biograft.kb.sources.log import ReadLog

GAD_HEADER = "index\tsentence\tlabel"
_INDICATOR = re.compile(r"@([A-Z]+)(?:-([A-Z]+))?\$")


def read_gad(config: TaskConfig, log: ReadLog) -> Iterator[RelationExample]:
    """Read GAD: one sentence with its label per line."""
    for row in read_tabbed(config, log, 3, "id, sentence, label"):
        identifier, sentence, label = row.cells
        if row.line == 1 and row.text == GAD_HEADER:
            log.n_read -= 1
        elif not label.strip():
            log.reject("label is empty", row.line, row.text)
        elif len(mentions := _mentions(sentence)) != 2:
            log.reject(f"{len(mentions)} indicators such as @GENE$, expected 2", row.line, row.text)
        else:
            first, second = mentions
            yield RelationExample(sentence, first, second, label.strip(), id=identifier.strip())


def _mentions(sentence: str) -> list[Mention]:
    return [
        Mention(match.start(), match.end(), match[0], type=kind)
        for match in _INDICATOR.finditer(sentence)
        for kind in match.groups()
        if kind
    ]


def _is_gad(lines: list[str]) -> bool:
    return (lines[0] == GAD_HEADER or len(lines[0].split("\t")) == 3) and all(
        _INDICATOR.search(line) for line in lines if line != GAD_HEADER
    )


GAD = TaskFormat("relation", read_gad, by_lines(_is_gad))


HOC_HEADER = "labels\tsentence\tindex"
_LABELS = re.compile(r"\d+_[01](?:,\d+_[01])*")


def read_hoc(config: TaskConfig, log: ReadLog) -> Iterator[ClassExample]:
    """Read HoC: one sentence with its labels per line."""
    for row in read_tabbed(config, log, 3, "labels, sentence, id"):
        labels, sentence, identifier = row.cells
        if row.line == 1 and row.text == HOC_HEADER:
            log.n_read -= 1
        elif not _LABELS.fullmatch(labels.strip()):
            log.reject("labels are not of the form 0_1,1_0,...", row.line, row.text)
        elif not sentence.strip():
            log.reject("sentence is empty", row.line, row.text)
        else:
            flags = (label.split("_") for label in labels.strip().split(","))
            positive = tuple(name for name, flag in flags if flag == "1")
            yield ClassExample(sentence, positive, multi=True, id=identifier.strip())


HOC = TaskFormat("class", read_hoc, by_lines(lambda lines: lines[0] == HOC_HEADER))


ANSWERS = ("yes", "no")


def read_bioasq(config: TaskConfig, log: ReadLog) -> Iterator[ClassExample]:
    """Read BioASQ: one yes/no question with its context per line."""
    for row in read_tabbed(config, log, 4, "id, question, context, yes/no"):
        identifier, question, context, answer = row.cells
        if answer.strip() not in ANSWERS:
            log.reject("the answer is neither yes nor no", row.line, row.text)
        elif not question.strip():
            log.reject("question is empty", row.line, row.text)
        else:
            yield ClassExample(question, (answer.strip(),), context, id=identifier.strip())


def _is_bioasq(lines: list[str]) -> bool:
    cells = [line.split("\t") for line in lines]
    return all(len(row) == 4 and row[3].strip() in ANSWERS for row in cells)


BIOASQ = TaskFormat("class", read_bioasq, by_lines(_is_bioasq))


ENTITY_MARKS = (("<< ", " >>"), ("[[ ", " ]]"))
GROUPS = {
    "UPREGULATOR": "CPR:3",
    "ACTIVATOR": "CPR:3",
    "INDIRECT-UPREGULATOR": "CPR:3",
    "DOWNREGULATOR": "CPR:4",
    "INHIBITOR": "CPR:4",
    "INDIRECT-DOWNREGULATOR": "CPR:4",
    "AGONIST": "CPR:5",
    "AGONIST-ACTIVATOR": "CPR:5",
    "AGONIST-INHIBITOR": "CPR:5",
    "ANTAGONIST": "CPR:6",
    "SUBSTRATE": "CPR:9",
    "PRODUCT-OF": "CPR:9",
    "SUBSTRATE_PRODUCT-OF": "CPR:9",
}
"""The relation groups of BLURB; its sixth class, false, has no example in these files."""
NO_NEGATIVES = "holds related pairs only: no example of an unrelated pair (BLURB's class false)"


def read_chemprot(config: TaskConfig, log: ReadLog) -> Iterator[RelationExample]:
    """Read ChemProt: one text with marked entities per JSON line."""
    log.note(NO_NEGATIVES)
    for row in read_objects(config.path, log, config.encoding):
        marked, label = row.value.get("text"), row.value.get("label")
        if not isinstance(marked, str) or not isinstance(label, str) or not label:
            log.reject("not of the form text, label", row.line, row.text)
            continue
        if (unmarked := unmark(marked, ENTITY_MARKS)) is None:
            log.reject("not exactly one << >> and one [[ ]]", row.line, row.text)
            continue
        if config.grouped and label not in GROUPS:
            log.reject("a relation of no group", row.line, row.text)
            continue
        text, first, second = unmarked
        yield RelationExample(text, first, second, GROUPS[label] if config.grouped else label)


def _is_chemprot(lines: list[str]) -> bool:
    marks = [mark for pair in ENTITY_MARKS for mark in pair]
    return all(line.startswith("{") and all(mark in line for mark in marks) for line in lines)


CHEMPROT = TaskFormat("relation", read_chemprot, by_lines(_is_chemprot), frozenset({"grouped"}))
