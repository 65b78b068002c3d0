"""Texts that the demo shows: what biograft finds in them is exactly the gold standard.

Those of the page are in serve/test_example_notes.py. The page and the demo once showed wrong
findings: *Tetanus up to date* as present, the cut of a friend as the patient's, *chest X-ray* as
possible.
"""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from biograft.cli import app
from biograft.clinical import status_of
from biograft.evaluation import read_assertions
from biograft.kb import KnowledgeBase
from biograft.linking import Linker
from biograft.text.documents import Document

VALUES = {"en": ["38.6 °C", "8.2 %", "500 mg"], "zh": ["38.6℃", "8.2%"]}


@pytest.fixture(scope="module")
def kb(starter):
    return KnowledgeBase.open(starter)


def gold(language: str, name: str) -> tuple[str, list[tuple[str, str, str]]]:
    """Return a text, and the finding, concept and status of each of its mentions."""
    notes = {note.id: note for note in read_assertions(f"notes-{language}-demo")}
    note = notes[f"{language}-{name}"]
    return note.text, [
        (note.text[m.start : m.end], str(m.concept), status_of(m.flags)) for m in note.mentions
    ]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_demo_notes_prints_the_gold_findings(tmp_path, language):
    done = CliRunner().invoke(app, ["demo", "notes", "--language", language, "-o", str(tmp_path)])
    assert done.exit_code == 0, done.output
    text, findings = gold(language, "demo")
    assert f"\n{text}\n" in done.output
    table = done.output.partition("  finding ")[2].partition("\n\n")[0].splitlines()[1:]
    rows = [re.split(r"\s{2,}", line.strip()) for line in table]
    kb = KnowledgeBase.open(tmp_path / "notes")
    assert [tuple(row[:3]) for row in rows] == [
        (mention, kb.name_in(kb.row(concept), language), status)
        for mention, concept, status in findings
    ]
    assert [row[4] for row in rows if len(row) > 4] == VALUES[language]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_texts_of_the_start_demo(kb, language):
    text, findings = gold(language, "start")
    mentions = Linker.open(kb)(Document("start", text)).mentions
    assert [(m.text, m.concept, m.status) for m in mentions] == findings
