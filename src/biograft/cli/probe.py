"""``biograft probe``: what models have learned, seen from outside."""

from __future__ import annotations

import typer

from biograft.cli.probe_attention import attention
from biograft.cli.probe_cloze import cloze

app = typer.Typer(
    help="Ask a language model what it knows of a knowledge base, and look at its attention.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command()(cloze)
app.command()(attention)
