"""Findings in notes that the author of the rules had not seen, end to end: concept and status.

A marked finding is found if an answer that overlaps it has its concept, by the names that the notes
state for it. Of the marked findings whose concept the store has:

concept      fraction that is found
status       fraction that is found with its status, with an interval over findings
right        of those found, the fraction whose status is right
f1           F1 of concept and status; answers outside of all marks count as wrong
f1_of_all    the same, where a finding whose concept the store lacks counts as missed
outside      answers that overlap no mark
gain         with --before, the result of another version: change of status, paired over findings

English notes with the diseases of MEDIC and with all of MeSH, of which diseases, symptoms and
mental disorders count; Chinese notes with the built-in knowledge base.

    BIOGRAFT_DATA=... python -m biograft_lab.scripts.unseen_notes --json
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from script_options import some_of

from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.linking import Linker
from biograft.metrics import bootstrap_interval
from biograft.text.documents import Document
from biograft_lab.scripts import new_parser, run

CODES = {
    "p": "present",
    "n": "absent",
    "u": "possible",
    "h": "historical",
    "f": "family",
    "o": "other_person",
    "y": "hypothetical",
    "c": "conditional",
}
"""Statuses as the Chinese notes write them; without one, a finding is present."""
STORES = ("medic", "mesh", "chinese")
_MARK = re.compile(r"\[\[(.*?)\]\]")
_HEADING = re.compile(r"^(?:@@ |#(?=\d))(.*)\n", re.MULTILINE)
_DISEASE_TREES = ("C", "F01", "F03")
_COMPARED = ("concept", "status", "right", "f1", "f1_of_all", "answers", "outside", "each")


class Marked(NamedTuple):
    """A finding as the notes mark it: span, statuses that are right, names of its concept."""

    start: int
    end: int
    statuses: frozenset[str]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """A note with its findings."""

    id: str
    text: str
    findings: tuple[Marked, ...]


def read_notes(path: Path) -> Iterator[Note]:
    """Yield the notes of a file, English or Chinese."""
    parts = _HEADING.split(path.read_text("utf-8"))[1:]
    read = _english if parts and path.name.startswith("notes_en") else _chinese
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        text, findings, end = "", [], 0
        for mark in _MARK.finditer(body.strip()):
            text += body.strip()[end : mark.start()]
            mention, statuses, names = read(mark[1])
            findings.append(Marked(len(text), len(text) + len(mention), statuses, names))
            text, end = text + mention, mark.end()
        yield Note(name, text + body.strip()[end:], tuple(findings))


def _english(mark: str) -> tuple[str, frozenset[str], tuple[str, ...]]:
    mention, status, name = mark.split("|")
    return mention, frozenset([status]), () if name == "-" else (name,)


def _chinese(mark: str) -> tuple[str, frozenset[str], tuple[str, ...]]:
    mention, _, rest = mark.partition("|")
    codes, _, name = rest.partition("=")
    return mention, frozenset(CODES[code] for code in codes or "p"), (name or mention,)


class _Scored(NamedTuple):
    """Counts of the notes, and whether each finding is found, and with its status."""

    found: list[bool]
    right: list[bool]
    n_answers: int
    n_marked: int
    outside: list[str]
    wrong: list[str]


def measure_notes(
    linker: Linker, notes: Sequence[Note], counts: Callable[[str], bool]
) -> dict[str, Any]:
    """Compare the findings of a linker with the marks.

    Args:
        linker: The linker.
        notes: The notes.
        counts: Says whether a concept is a finding.
    """
    score = _Scored([], [], 0, 0, [], [])
    n_answers = n_marked = 0
    linked = linker.pipe([Document(note.id, note.text) for note in notes])
    for note, document in zip(notes, linked, strict=True):
        answers = [each for each in document.mentions if each.concept and counts(each.concept)]
        n_answers += len(answers)
        n_marked += sum(bool(mark.names) for mark in note.findings)
        for mark in note.findings:
            wanted = {
                linker.kb.id_at(row) for name in mark.names for row in linker.kb.rows_by_name(name)
            }
            if not any(map(counts, wanted)):
                continue
            over = [each for each in answers if each.start < mark.end and each.end > mark.start]
            same = [each for each in over if each.concept in wanted]
            score.found.append(bool(same))
            score.right.append(any(each.status in mark.statuses for each in same))
            if not score.right[-1]:
                said = [(m.text, linker.kb[m.concept or ""].name, m.status) for m in over]
                marked = (note.text[mark.start : mark.end], *mark.names, *sorted(mark.statuses))
                score.wrong.append(f"{note.id}: {marked} -> {said}")
        for each in answers:
            if not any(each.start < m.end and each.end > m.start for m in note.findings):
                around = note.text[max(0, each.start - 30) : each.end + 20].replace("\n", "/")
                name = linker.kb[each.concept].name if each.concept else ""
                score.outside.append(f"{note.id}: {each.text} -> {name}: {around!r}")
    return _figures(score._replace(n_answers=n_answers, n_marked=n_marked))


def _figures(score: _Scored) -> dict[str, Any]:
    right, n_found = np.array(score.right, float), sum(score.found)
    n_right = sum(score.right)
    return {
        "n": len(right),
        "concept": percent(n_found / len(right)),
        "status": percent(n_right / len(right)),
        "interval": bootstrap_interval(right).to_json(),
        "right": percent(n_right / n_found),
        "f1": percent(2 * n_right / (len(right) + n_found + len(score.outside))),
        "f1_of_all": percent(2 * n_right / (score.n_marked + n_found + len(score.outside))),
        "answers": score.n_answers,
        "outside": len(score.outside),
        "each": "".join(str(int(value)) for value in score.right),
        "wrong_findings": score.wrong,
        "answers_outside": score.outside,
    }


def _gain(before: str, after: str) -> dict[str, Any] | None:
    """Return the change of the fraction that is right, with its paired interval."""
    if len(before) != len(after):
        return None
    change = np.array([int(b) - int(a) for a, b in zip(before, after, strict=True)], float)
    return {"value": percent(change.mean()), "interval": bootstrap_interval(change).to_json()}


def percent(value: float) -> float:
    """Return a fraction in percent, with one digit."""
    return round(100 * float(value), 1)


def open_store(name: str, data: Path, folder: Path) -> KnowledgeBase:
    """Build one of ``STORES``, unless the folder has it.

    Args:
        name: Its name.
        data: Folder of the real data.
        folder: Folder of the stores.
    """
    if not (folder / name).exists():
        linking = data / "entity_linking"
        if name == "medic":
            sources = [SourceConfig(path=linking / "medic" / "medic_06Jul2012.txt.gz")]
        elif name == "mesh":
            sources = [SourceConfig(path=mesh_table(linking / "mesh", folder))]
        else:
            sources = [SourceConfig(path=Path(s)) for s in ("starter", "clinical-findings")]
        build_store(BuildConfig(sources=tuple(sources)), folder / name)
    return KnowledgeBase.open(folder / name)


def mesh_table(mesh: Path, folder: Path) -> Path:
    """Write the descriptors of MeSH with the trees they stand in as their type.

    Args:
        mesh: Folder of the files of MeSH.
        folder: Folder to write to.
    """
    trees: dict[str, str] = {}
    with gzip.open(mesh / "mesh_tree_numbers_2015.tsv.gz", "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if row["mesh_tree_number"].startswith(_DISEASE_TREES):
                trees[row["mesh_id"]] = "disease"
    path = folder / "mesh.tsv"
    with (
        gzip.open(
            mesh / "mesh_descriptors_2019_entry_terms.tsv.gz", "rt", encoding="utf-8"
        ) as file,
        path.open("w", encoding="utf-8") as out,
    ):
        out.write("id\tname\tsynonyms\ttype\n")
        for line in file:
            concept, name, synonyms = [*line.rstrip("\n").split("\t"), ""][:3]
            out.write(f"{concept}\t{name}\t{synonyms}\t{trees.get(concept, 'other')}\n")
    return path


def linkers_and_notes(options: argparse.Namespace) -> Iterator[tuple[str, Linker, list[Note]]]:
    """Yield each store that is chosen, by name, with its linker and the notes of its language."""
    with tempfile.TemporaryDirectory() as work:
        folder = options.folder or Path(work)
        folder.mkdir(parents=True, exist_ok=True)
        for name in options.stores:
            language = "zh" if name == "chinese" else "en"
            notes = list(read_notes(options.data / "clinical" / f"notes_{language}_dev.txt"))
            yield name, Linker.open(open_store(name, options.data, folder), k=1), notes


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measure the notes with each store, and print the result."""
    result: dict[str, Any] = {}
    for name, linker, notes in linkers_and_notes(options):
        result[name] = measure_notes(linker, notes, _finding_test(linker.kb, name))
        if options.before:
            before = json.loads(options.before.read_text("utf-8"))[name]
            result[name]["before"] = {key: before[key] for key in _COMPARED}
            result[name]["gain"] = _gain(before["each"], result[name]["each"])
    if not options.details:
        for figures in result.values():
            del figures["wrong_findings"], figures["answers_outside"]
    return result


def _finding_test(kb: KnowledgeBase, name: str) -> Callable[[str], bool]:
    if name == "medic":
        return kb.__contains__
    types = {"disease"} if name == "mesh" else {"disease", "symptom", "finding", "procedure"}
    return lambda concept: concept in kb and any(kind.code in types for kind in kb[concept].types)


def main() -> None:
    """Measure, and print one JSON object."""
    parser = new_parser(__doc__)
    parser.add_argument("--stores", type=some_of(STORES), default=list(STORES))
    parser.add_argument("--folder", type=Path, help="folder of the stores; default: a new one")
    parser.add_argument("--before", type=Path, help="result of an earlier version, to compare")
    parser.add_argument("--details", action="store_true", help="list what is wrong, and outside")
    run(measure, parser)


if __name__ == "__main__":
    main()
