"""``biograft demo notes``: findings in the clinical notes that ship with biograft."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from biograft.cli.evaluate_findings import FINDING_TYPES, print_findings
from biograft.cli.kb import print_report
from biograft.config import split_list
from biograft.errors import ConfigError

if TYPE_CHECKING:
    from biograft.evaluation import AssertionDocument
    from biograft.linking import Linker

_LANGUAGES = ("en", "zh")


def demo_notes(store: Path, language: str) -> None:
    """Link the held-out notes of a language, and compare the findings with the gold standard."""
    from biograft.evaluation import evaluate_findings, read_assertions
    from biograft.kb import BuildConfig, KnowledgeBase, build_store
    from biograft.kb.sources import SourceConfig
    from biograft.linking import Linker

    if language not in _LANGUAGES:
        raise ConfigError(f"--language: expected {' or '.join(_LANGUAGES)}, found {language!r}")
    typer.echo(f"$ biograft kb build starter clinical-findings -o {store}")
    sources = tuple(SourceConfig(path=Path(name)) for name in ("starter", "clinical-findings"))
    print_report(build_store(BuildConfig(sources=sources), store, overwrite=True))
    linker = Linker.open(KnowledgeBase.open(store), k=1)
    name = f"notes-{language}-test"
    notes = list(read_assertions(name))
    shown = read_assertions(f"notes-{language}-demo")
    _show(linker, next(note for note in shown if note.id == f"{language}-demo"))
    typer.echo(f"\n$ biograft evaluate findings --kb {store} --gold {name}")
    start = time.perf_counter()
    result = evaluate_findings(linker, notes, split_list(FINDING_TYPES))
    seconds = time.perf_counter() - start
    print_findings(result)
    typer.echo(f"\n{len(notes)} notes linked and compared in {seconds:.1f} s.")


def _show(linker: Linker, note: AssertionDocument) -> None:
    """Print a note and the findings in it."""
    from biograft.text.documents import Document

    typer.echo(f"\n{note.text}\n")
    rows = [("finding", "concept", "status", "section", "value")]
    for mention in linker(Document(note.id, note.text)).mentions:
        if mention.concept is not None:
            values = ", ".join(each.text for each in mention.measurements)
            name = linker.kb[mention.concept].name
            rows.append((mention.text, name, mention.status or "", mention.section or "", values))
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)
        )
        typer.echo("  " + "  ".join(cells).rstrip())


def _width(text: str) -> int:
    """Return how many columns a text takes; a Chinese character takes two."""
    from unicodedata import east_asian_width

    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)
