"""Warnings about a gold standard that several commands give, on stderr."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import typer

_SHOWN_IDS = 3


def warn_left_out(counts: Mapping[str, int], what: str, where: str = "") -> None:
    """Say how many of what is in a gold standard could not be read, and why."""
    for reason, n in counts.items():
        typer.echo(f"warning: {where}{n:,} {what} left out: {reason}", err=True)


def warn_unknown(unknown: Collection[str], effect: str = "", where: str = "") -> None:
    """Say which gold ids the knowledge base does not know, if any, and what comes of it."""
    if not unknown:
        return
    shown = ", ".join(sorted(unknown)[:_SHOWN_IDS])
    typer.echo(
        f"warning: {where}the knowledge base does not know {len(unknown):,} gold ids "
        f"(such as {shown}){effect}",
        err=True,
    )
