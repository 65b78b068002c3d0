"""``biograft graph``: the relations of a knowledge base as vectors and neighbours."""

from __future__ import annotations

import typer

from biograft.cli.graph_embed import embed
from biograft.cli.graph_evaluate import evaluate
from biograft.cli.graph_neighbours import neighbours

app = typer.Typer(
    help="Embed the graph of a knowledge base, or rank the neighbours of its concepts.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command()(embed)
app.command()(evaluate)
app.command()(neighbours)
