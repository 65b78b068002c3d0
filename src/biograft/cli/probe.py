"""``biograft probe``: what models have learned, seen from outside."""

from __future__ import annotations

import typer

from biograft.cli.probe_attention import attention
from biograft.cli.probe_cloze import cloze
from biograft.cli.probe_similarity import similarity

app = typer.Typer(
    help="Ask models what they know of a knowledge base, and look at their attention.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command()(cloze)
app.command()(attention)
app.command()(similarity)
