"""``biograft corpus``: texts with annotations: convert, annotate, segment, look at task files."""

from __future__ import annotations

import typer

from biograft.cli.corpus_annotate import annotate
from biograft.cli.corpus_convert import convert, formats
from biograft.cli.corpus_segment import segment
from biograft.cli.corpus_tasks import tasks

app = typer.Typer(
    help="Convert corpora, annotate text with concepts, segment long names, look at task files.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command()(convert)
app.command()(formats)
app.command()(annotate)
app.command()(segment)
app.command()(tasks)
