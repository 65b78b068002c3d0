"""What ``biograft probe`` prints for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import typer

_PARTS = ("all", "type 1", "type 2")


def print_probe(told: dict[str, Any]) -> None:
    """Print recall of each model, of each relation, and how much better one is than another."""
    first = told["models"][0]["all"]
    typer.echo(f"{told['n_queries']:,} queries of {first['n_relations']} relations")
    for model in told["models"]:
        typer.echo(f"{model['model']}  {model['seconds']:.1f} s")
        for part in _PARTS:
            row = model[part]
            low, high = row["interval"]
            typer.echo(
                f"  {part:6} {row['recall']:6.2f}   {low:6.2f} to {high:6.2f}"
                f"   {row['n_queries']:,} queries, {row['n_relations']} relations"
            )
        if model["n_too_long"]:
            typer.echo(f"  too long for the model {model['n_too_long']:,} times, counted as wrong")
        shown = "  ".join(f"{n}: {recall:.2f}" for n, recall in model["by_length"].items())
        typer.echo(f"  by number of masks  {shown}")
    _print_relations(told["models"])
    for row in told["differences"]:
        typer.echo(f"{row['model']} against {row['than']}")
        for part in _PARTS:
            low, high = row[part]["interval"]
            typer.echo(
                f"  {part:6} {row[part]['difference']:+6.2f}   {low:+6.2f} to {high:+6.2f}"
                f"   p {row[part]['p']:.4f}"
            )


def _print_relations(models: Sequence[dict[str, Any]]) -> None:
    """Print recall by relation, a column a model."""
    width = max(len(row["relation"]) for row in models[0]["relations"])
    for rows in zip(*(model["relations"] for model in models), strict=True):
        figures = "  ".join(f"{row['all']['recall']:6.2f}" for row in rows)
        typer.echo(f"  {rows[0]['relation']:{width}} n={rows[0]['all']['n']:<6,} {figures}")
