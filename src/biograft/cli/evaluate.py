"""``biograft evaluate``: measure a linker or a model of a task on a gold standard."""

from __future__ import annotations

import typer

from biograft.cli.evaluate_link import link
from biograft.cli.evaluate_task import task
from biograft.cli.evaluate_text import text

app = typer.Typer(
    help="Measure a linker or a model of a task on a gold standard.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command()(link)
app.command()(text)
app.command()(task)
