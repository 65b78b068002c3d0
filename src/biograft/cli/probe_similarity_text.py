"""What ``biograft probe similarity`` prints for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

_PARTS = {
    "D1": "all queries",
    "D2": "same neighbours",
    "D3": "a rare name",
}


def print_similarity(told: Mapping[str, Any]) -> None:
    """Print accuracy on each part of each encoder, and how much better each is than the first."""
    made = ""
    if "n_pairs" in told:
        made = f" of {told['n_pairs_drawn']:,} of {told['n_pairs']:,} pairs"
    typer.echo(f"{told['n_queries']:,} queries{made}, chance {told['chance']:.2f}")
    if told.get("n_left_out"):
        n_negatives = told["settings"]["negatives"]
        typer.echo(f"  left out {told['n_left_out']:,}: fewer than {n_negatives} look-alikes")
    rows = told.get("encoders", [told])
    for part, meaning in _PARTS.items():
        if not rows[0][part]["n"]:
            typer.echo(f"  {part} is empty: {rows[0][part]['why']}")
        else:
            typer.echo(f"  {part}  {rows[0][part]['n']:,} queries: {meaning}")
    for row in rows:
        typer.echo(f"{row['label']}  {row['seconds']:.1f} s")
        _print_row(row)
    for row in rows[1:]:
        typer.echo(f"{row['label']} against {row['difference']['than']}")
        for part in _PARTS:
            if part in row["difference"]:
                found = row["difference"][part]
                low, high = found["interval"]
                typer.echo(
                    f"  {part}  {found['difference']:+6.2f}   {low:+6.2f} to {high:+6.2f}"
                    f"   p {found['p']:.4f}"
                )


def _print_row(row: Mapping[str, Any]) -> None:
    for part in _PARTS:
        if row[part]["n"]:
            low, high = row[part]["interval"]
            typer.echo(f"  {part}  {row[part]['acc@1']:6.2f}   {low:6.2f} to {high:6.2f}")
