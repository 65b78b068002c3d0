"""``biograft probe``: what a language model knows of a knowledge base."""

from __future__ import annotations

import typer

from biograft.cli.probe_cloze import cloze

app = typer.Typer(
    help="Ask a language model what it knows of a knowledge base.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.callback()
def _probe() -> None:
    """Keep ``cloze`` a command of its own, though it is the only one yet."""


app.command()(cloze)
