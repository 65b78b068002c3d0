"""``biograft mapping``: merge, chain, invert, convert, diff and conflicts of mapping sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from biograft.cli.fields import CommandGroup
from biograft.cli.options import (
    REJECTED,
    Json,
    OptionalKb,
    OutFile,
    Overwrite,
    open_kb,
    print_json,
    refuse_input_as_output,
    report_left_out,
)
from biograft.errors import visible

if TYPE_CHECKING:
    from biograft.mapping import MappingRow, SetReport

app = CommandGroup("Merge, chain, invert, convert, compare and check mapping sets (SSSOM).")

First = Annotated[Path, typer.Argument(metavar="SET")]


@app.command()
def merge(
    sets: Annotated[list[Path], typer.Argument(metavar="SET...")],
    out: OutFile,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Put mapping sets together; rows that say the same become one.

    Of these the decision of a person stands, then the later one; the people of both are named.
    What contradicts itself stays, and is counted: see `biograft mapping conflicts`.

    Args:
        sets: SSSOM files.
    """
    from biograft.mapping import MappingSet, find_conflicts, merge_sets

    refuse_input_as_output(out, *sets)
    report = merge_sets([MappingSet.read(path) for path in sets])
    _write(report, out, overwrite, as_json, n_conflicts=len(find_conflicts(report.result)))


@app.command()
def chain(
    first: Annotated[Path, typer.Argument(metavar="FIRST")],
    second: Annotated[Path, typer.Argument(metavar="SECOND")],
    out: OutFile,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Map the subjects of one set to the objects of another, over what both name.

    Exact mappings pass on the relation of the other; broad, narrow and close ones chain with their
    like, and from any others nothing follows. The confidence is the product of both.

    Args:
        first: SSSOM file whose objects are the subjects of SECOND.
        second: SSSOM file.
    """
    from biograft.mapping import MappingSet, chain_sets

    refuse_input_as_output(out, first, second)
    report = chain_sets(MappingSet.read(first), MappingSet.read(second))
    _write(report, out, overwrite, as_json)


@app.command()
def invert(
    mappings: First,
    out: OutFile,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Map the objects of a set to its subjects.

    Args:
        mappings: SSSOM file.
    """
    from biograft.mapping import MappingSet, invert_set

    refuse_input_as_output(out, mappings)
    _write(invert_set(MappingSet.read(mappings)), out, overwrite, as_json)


@app.command()
def convert(
    mappings: First,
    out: OutFile,
    to: Annotated[str, typer.Option(metavar="sssom|usagi|omop")],
    kb: OptionalKb = None,
    proposals: Annotated[bool, "--proposals"] = False,
    source_vocabulary: Annotated[str, "NAME"] = "",
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write mappings as SSSOM, as Usagi saves them, or as source_to_concept_map of OMOP.

    source_to_concept_map needs the knowledge base of an Athena bundle: a target that is not
    standard is followed along 'Maps to' and 'Concept replaced by'; one that it does not have, or
    that leads to no standard one, is listed and not written, and the exit status is 1.

    Args:
        mappings: SSSOM, a file of Usagi, or source_to_concept_map.
        to: Format of OUT.
        proposals: In source_to_concept_map, write undecided suggestions, too.
        source_vocabulary: In source_to_concept_map, the name of the vocabulary of the terms;
            default: that of SET.
    """
    from biograft.mapping import MappingSet
    from biograft.mapping.formats import write_set

    refuse_input_as_output(out, mappings)
    given = MappingSet.read(mappings)
    base = None if kb is None else open_kb(kb)
    left_out: list[tuple[str, str]] = []
    counts = write_set(
        given,
        out,
        to,
        kb=base,
        source=source_vocabulary,
        proposals=proposals,
        overwrite=overwrite,
        left_out=left_out,
    )
    report_left_out(left_out)
    _report({**counts, "n_left_out": len(left_out)}, out, as_json=as_json)
    if left_out:
        raise typer.Exit(REJECTED)


@app.command()
def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD")],
    new: Annotated[Path, typer.Argument(metavar="NEW")],
    limit: Annotated[int, typer.Option("-k", "--limit", metavar="N", min=0)] = 3,
    exit_code: Annotated[bool, "--exit-code"] = False,
    as_json: Json = False,
) -> None:
    """Compare two mapping sets: mappings that were added, removed or changed.

    Exits with 0 whether or not there are changes, unless --exit-code is given; 2 is an error.

    Args:
        old: The earlier SSSOM file.
        new: The later SSSOM file.
        limit: Maximum examples of each kind; with --json all are given.
        exit_code: Exit with 1 if anything has changed, otherwise with 0.
    """
    from biograft.mapping import MappingSet, diff_sets

    found = diff_sets(MappingSet.read(old), MappingSet.read(new))
    counts = {"added": len(found.added), "removed": len(found.removed)}
    counts |= {"changed": len(found.changed), "same": found.n_same}
    if as_json:
        for kind, rows in (("added", found.added), ("removed", found.removed)):
            for row in rows:
                print_json({"change": kind, **_shown(row)})
        for each in found.changed:
            slots = {slot: list(pair) for slot, pair in each.slots.items()}
            print_json({"change": "changed", **_shown(each.after), "slots": slots})
    else:
        lines: dict[str, Iterable[str]] = {
            "added": map(_line, found.added),
            "removed": map(_line, found.removed),
            "changed": (
                f"{_line(each.after)} ({'; '.join(_changes(each.slots))})" for each in found.changed
            ),
        }
        for kind, n in counts.items():
            typer.echo(f"{kind:10} {n:>9,}")
            for _, line in zip(range(limit), lines.get(kind, ()), strict=False):
                typer.echo(visible(f"{'':12}{line}"))
    if exit_code and counts["added"] + counts["removed"] + counts["changed"]:
        raise typer.Exit(1)


@app.command()
def conflicts(
    mappings: First,
    kb: OptionalKb = None,
    limit: Annotated[int, typer.Option("-k", "--limit", metavar="N", min=0)] = 3,
    as_json: Json = False,
) -> None:
    """List mappings that cannot all be right, and objects that a knowledge base does not have.

    The exit status is 1 if there are any.

    Args:
        mappings: SSSOM file.
        limit: Maximum examples of each kind; with --json all are given.
    """
    from biograft.mapping import MappingSet, find_conflicts
    from biograft.mapping.set_operations import CONFLICTS

    found = find_conflicts(MappingSet.read(mappings), None if kb is None else open_kb(kb))
    counts = Counter(each.kind for each in found)
    for each in found if as_json else ():
        rows = [_shown(row) for row in each.rows]
        print_json({"conflict": each.kind, "subject": each.subject, "rows": rows})
    for kind, about in CONFLICTS.items() if not as_json else ():
        if kind not in counts:
            continue
        typer.echo(f"{kind:10} {counts[kind]:>9,}  {about}")
        of_kind = (each for each in found if each.kind == kind)
        for _, each in zip(range(limit), of_kind, strict=False):
            typer.echo(visible(f"{'':12}{'; '.join(map(_line, each.rows))}"))
    if not found and not as_json:
        typer.echo("no conflicts")
    if found:
        raise typer.Exit(REJECTED)


def _write(report: SetReport, out: Path, overwrite: bool, as_json: bool, **counts: int) -> None:
    """Write the set of a report, and print its counts."""
    report.result.write(out, overwrite=overwrite)
    _report({**report.to_json(), **counts}, out, as_json=as_json)


def _report(said: dict[str, int], out: Path, *, as_json: bool) -> None:
    """Print counts."""
    if as_json:
        print_json({**said, "out": str(out)})
    else:
        words = (f"{key.removeprefix('n_').replace('_', ' ')} {n:,}" for key, n in said.items())
        typer.echo("  ".join(words))


def _shown(row: MappingRow) -> dict[str, str]:
    return {slot: cell for slot, cell in row.to_cells().items() if cell}


def _line(row: MappingRow) -> str:
    subject = f"{row.subject_id} {row.subject_label}".strip()
    sign = "not " if row.predicate_modifier else ""
    return f"{subject} {sign}{row.relation} {row.object_id} {row.object_label}".strip()


def _changes(slots: dict[str, tuple[str, str]]) -> list[str]:
    return [f"{slot}: {old or '-'} -> {new or '-'}" for slot, (old, new) in slots.items()]
