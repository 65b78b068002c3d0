"""``biograft kb diff``: what changed between two stores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from biograft.cli.options import Json, Overwrite, Quiet, print_json
from biograft.config import split_list
from biograft.errors import visible
from biograft.progress import Progress

if TYPE_CHECKING:
    from biograft.kb import Change, StoreDiff

_EVIDENCE = {
    "alternate": "by alternate id",
    "replaced": "named as its successor",
    "xref": "by cross-reference",
}
_ARROW = {"name-added": "+", "name-removed": "-"}


def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD")],
    new: Annotated[Path, typer.Argument(metavar="NEW")],
    only: Annotated[str, "added,..."] = "",
    out: Annotated[Path | None, "-o", "--out", "FILE"] = None,
    limit: Annotated[int, typer.Option("-k", "--limit", metavar="N", min=0)] = 3,
    exit_code: Annotated[bool, "--exit-code"] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare two stores of an ontology: concepts, names, parents and types that changed.

    Exits with 0 whether or not there are changes, unless --exit-code is given; 2 is an error.

    Args:
        old: Folder of the earlier store.
        new: Folder of the later store.
        only: Kinds of changes to look for: added, retired, merged, replaced, renamed,
            name-added, name-removed, moved, types-changed; default: all.
        out: Write one change a line to a .tsv or .jsonl file (.gz: compressed).
        limit: Maximum examples of each kind.
        exit_code: Exit with 1 if anything has changed, otherwise with 0.
    """
    from biograft.kb import KnowledgeBase, diff_stores
    from biograft.kb.diff import form_of

    if out is not None:
        form_of(out)  # refuse it before the work
    progress = Progress(enabled=not quiet)
    kinds = split_list(only)
    changes = diff_stores(
        KnowledgeBase.open(old), KnowledgeBase.open(new), only=kinds, progress=progress
    )
    if out is not None:
        n_changes = changes.write(out, overwrite=overwrite, progress=progress)
        typer.echo(f"{n_changes:,} changes written to {out}", err=True)
    if as_json:
        print_json(changes.to_json(limit))
    else:
        _print(changes, limit)
    if exit_code and changes:
        raise typer.Exit(1)


def _print(changes: StoreDiff, limit: int) -> None:
    from biograft.kb import CHANGES

    for what, sizes in (
        ("concepts", (len(changes.old), len(changes.new))),
        ("names", (changes.old.n_names, changes.new.n_names)),
    ):
        typer.echo(f"{what:14} {sizes[0]:>11,} -> {sizes[1]:,}")
    for note in changes.notes:
        typer.echo(f"note: {note}")
    for kind, n in changes.counts.items():
        typer.echo(f"{kind:14} {n:>11,}  {CHANGES[kind]}")
        for change in changes.examples(kind, limit):
            typer.echo(visible(f"{'':28}{_line(change)}"))


def _line(change: Change) -> str:
    """Describe a change in one line."""
    first = f"{change.id} {change.name}"
    if change.change in _ARROW:
        (text,) = change.old or change.new
        return f"{first}: {_ARROW[change.change]} {text} ({change.language})"
    if change.change == "renamed":
        return f"{change.id} {change.old[0]} -> {change.name}"
    if change.change in ("merged", "replaced"):
        return f"{first} -> {', '.join(change.new)} ({_EVIDENCE[change.evidence]})"
    if change.change == "retired":
        return first + (f" (consider {', '.join(change.new)})" if change.new else "")
    if change.change == "added":
        return first + (f" (was an alternate id of {', '.join(change.old)})" if change.old else "")
    parts = [f"- {value}" for value in change.old] + [f"+ {value}" for value in change.new]
    return f"{first}: {' '.join(parts)}" if parts else first
