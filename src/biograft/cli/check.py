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
    path: Annotated[str, typer.Argument(metavar="PATH")],
    as_json: Json = False,
) -> None:
    """Compare every file of a store, index, encoder or run with its recorded hash.

    Of a review (a file .db, or a postgresql:// URL) every row is compared. Of a store, the concepts
    are named that may be two: one id without a namespace, and names of several sources that have
    none in common.

    Args:
        path: A store, index, encoder, run, corpus or review, or a folder that holds some.
    """
    from biograft.errors import InputError, visible

    n_checked = n_damaged = 0
    for artifact in check_all(path):
        n_checked += 1
        n_damaged += bool(artifact.problems)
        notes = [] if artifact.problems else _mixed(artifact)
        if as_json:
            print_json(
                {
                    "path": str(artifact.path),
                    "format": artifact.format,
                    "files": artifact.n_files,
                    "bytes": artifact.n_bytes,
                    "problems": list(artifact.problems),
                    "notes": notes,
                }
            )
            continue
        for problem in artifact.problems:
            typer.echo(f"damaged  {visible(problem)}")
        if not artifact.problems:
            size = f"{artifact.n_files:,} files, {artifact.n_bytes / 1e6:,.1f} MB"
            typer.echo(f"ok       {visible(str(artifact.path))}  {artifact.format}, {size}")
        for note in notes:
            typer.echo(f"note     {visible(note)}")
    if not n_checked:
        raise InputError("holds nothing that biograft wrote", path=path, remedy="check the path")
    if n_damaged:
        raise typer.Exit(1)


_SHOWN = 5


def _mixed(artifact: CheckedArtifact) -> list[str]:
    """Name the concepts of a knowledge base that may be two; a few of many."""
    from biograft.kb import KnowledgeBase
    from biograft.kb.tables import STORE

    if artifact.format != STORE.format:
        return []
    notes, n_mixed = [], 0
    for concept in KnowledgeBase.open(artifact.path).mixed_concepts():
        n_mixed += 1
        if n_mixed <= _SHOWN:
            names = {name.source: name.text for name in reversed(concept.names)}
            named = "; ".join(f"{text} ({source})" for source, text in sorted(names.items()))
            notes.append(f"{concept.id} may be two concepts: {named}")
    if n_mixed > _SHOWN:
        notes.append(f"{n_mixed - _SHOWN:,} more concepts may be two")
    return notes


def check_all(place: str | Path) -> Iterator[CheckedArtifact]:
    """Check all that biograft wrote to a path, or the review of a database."""
    from biograft.artifacts import check_artifacts
    from biograft.errors import InputError
    from biograft.mapping.review_check import check_review, find_reviews, is_url

    if is_url(str(place)):
        from biograft.mapping.review_store import check_database

        yield check_database(str(place))
        return
    path = Path(place)
    if not path.exists():
        raise InputError("does not exist", path=path, remedy="check the path")
    yield from check_artifacts(path)
    yield from map(check_review, find_reviews(path))
