"""ChemProt as JSON lines: the two mentions marked in the text by ``<< >>`` and ``[[ ]]``.

The marks are taken out and become spans; which mention is the chemical is not told. Only pairs
that are related stand in the files: without negative pairs a model learns to tell relations
apart, not to find them, and its figures cannot be compared with those on BLURB's files.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from biograft.corpus.tasks.format import TaskConfig, TaskFormat, by_lines
from biograft.corpus.tasks.marks import unmark
from biograft.corpus.tasks.records import RelationExample
from biograft.sources.json_rows import read_objects

if TYPE_CHECKING:
    from biograft.sources.log import ReadLog

MARKS = (("<< ", " >>"), ("[[ ", " ]]"))
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
"""The groups BLURB counts; its sixth class, false, has no example in these files."""
NO_NEGATIVES = "holds related pairs only: no example of an unrelated pair (BLURB's class false)"


def read(config: TaskConfig, log: ReadLog) -> Iterator[RelationExample]:
    """Read marked texts in the order of the lines."""
    log.note(NO_NEGATIVES)
    for row in read_objects(config.path, log, config.encoding):
        marked, label = row.value.get("text"), row.value.get("label")
        if not isinstance(marked, str) or not isinstance(label, str) or not label:
            log.reject("not of the form text, label", row.line, row.text)
            continue
        if (found := unmark(marked, MARKS)) is None:
            log.reject("not exactly one << >> and one [[ ]]", row.line, row.text)
            continue
        if config.grouped and label not in GROUPS:
            log.reject("a relation of no group", row.line, row.text)
            continue
        text, first, second = found
        yield RelationExample(text, first, second, GROUPS[label] if config.grouped else label)


def _fits(lines: list[str]) -> bool:
    marks = [mark for pair in MARKS for mark in pair]
    return all(line.startswith("{") and all(mark in line for mark in marks) for line in lines)


FORMAT = TaskFormat("relation", read, by_lines(_fits), frozenset({"grouped"}))
