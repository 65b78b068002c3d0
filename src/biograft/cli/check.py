"""``biograft check``: compare what was written with what is on disk now."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from biograft.cli.options import Json, print_json

if TYPE_CHECKING:
    from biograft.artifacts import CheckedArtifact


def check(
    path: Annotated[Path, typer.Argument(metavar="PATH")],
    as_json: Json = False,
) -> None:
    """Compare every file of a store, index, encoder or run with its recorded hash.

    Of a review (a file .db) every row is compared.

    Args:
        path: A store, index, encoder, run, corpus or review, or a folder that holds some.
    """
    from biograft.errors import InputError, visible

    if not path.exists():
        raise InputError("does not exist", path=path, remedy="check the path")
    n_checked = n_damaged = 0
    for artifact in check_all(path):
        n_checked += 1
        n_damaged += bool(artifact.problems)
        if as_json:
            print_json(
                {
                    "path": str(artifact.path),
                    "format": artifact.format,
                    "files": artifact.n_files,
                    "bytes": artifact.n_bytes,
                    "problems": list(artifact.problems),
                }
            )
            continue
        for problem in artifact.problems:
            typer.echo(f"damaged  {visible(problem)}")
        if not artifact.problems:
            size = f"{artifact.n_files:,} files, {artifact.n_bytes / 1e6:,.1f} MB"
            typer.echo(f"ok       {visible(str(artifact.path))}  {artifact.format}, {size}")
    if not n_checked:
        raise InputError("holds nothing that biograft wrote", path=path, remedy="check the path")
    if n_damaged:
        raise typer.Exit(1)


def check_all(path: Path) -> Iterator[CheckedArtifact]:
    """Check all that biograft wrote to a path."""
    from biograft.artifacts import check_artifacts
    from biograft.mapping.review_check import check_review, find_reviews

    yield from check_artifacts(path)
    yield from map(check_review, find_reviews(path))
