"""``biograft kb valueset``: create, show, diff."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from biograft.cli.fields import CommandGroup
from biograft.cli.options import Json, Kb, OutFile, Overwrite, open_kb, print_json, warn_value_set
from biograft.config import split_list
from biograft.errors import ConfigError, visible

if TYPE_CHECKING:
    from biograft.kb import ValueSetMembers

app = CommandGroup("Make, show and compare value sets, which are FHIR files or expressions.")

_ValueSet = Annotated[
    str,
    typer.Argument(
        metavar="VALUE_SET",
        help="File (FHIR ValueSet, ATLAS concept set, ids), or an expression such as '<< ID'.",
    ),
]


@app.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    kb: Kb,
    out: OutFile,
    expression: Annotated[str, "ECL"] = "",
    ids: Annotated[str, "FILE|ID,..."] = "",
    below: Annotated[str, "ID,..."] = "",
    relation: Annotated[str, "NAME"] = "",
    to: Annotated[str, "ID,..."] = "",
    title: Annotated[str, "TEXT"] = "",
    version: Annotated[str, "TEXT"] = "",
    url: Annotated[str, "URL"] = "",
    expand: bool = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write a value set as a FHIR ValueSet: the rules by which its members are chosen.

    Several of --expression, --ids, --below and --relation choose what is in any of them.

    Args:
        name: Name of the value set.
        expression: Expression in ECL's brief syntax, such as '<< ID MINUS << ID'.
        ids: Ids, or files with ids of any kind that `biograft verify` reads.
        below: Concepts that are members with all below them.
        relation: With --to: members have this relation to one of its concepts.
        to: With --relation: ids of these concepts.
        title: Title for people.
        version: Version of the value set.
        url: Its canonical URL.
        expand: Add the members of today, with the version of KB.
    """
    from biograft.kb import make_value_set, read_value_set, write_value_set
    from biograft.kb.value_set_files import listed_ids

    if bool(relation) != bool(to):
        raise ConfigError("--relation, --to: give both")
    base = open_kb(kb)
    chosen = listed_ids(base, split_list(ids))
    chosen += [f'<< "{each}"' for each in split_list(below)]
    chosen += [f'(* : "{relation}" = "{each}")' for each in split_list(to)]
    if expression:
        chosen.append(f"({expression})" if chosen else expression)
    if not chosen:
        raise ConfigError("give --expression, --ids, --below, or --relation with --to")
    whole = " OR ".join(chosen)
    about = {"url": url, "version": version, "name": name, "title": title}
    resource = make_value_set(base, whole, expand=expand, **about)
    write_value_set(resource, out, overwrite=overwrite)
    n_members = len(read_value_set(base, out))
    if as_json:
        print_json({"out": str(out), "n_members": n_members})
    else:
        typer.echo(f"{n_members:,} members, written to {out}")


@app.command()
def show(
    value_set: _ValueSet,
    kb: Kb,
    limit: Annotated[int, typer.Option("-k", "--limit", metavar="N", min=0)] = 10,
    as_json: Json = False,
) -> None:
    """Show the members of a value set in a knowledge base, and which of its ids are not there.

    Args:
        limit: Maximum members; 0: all. --json has all.
    """
    from biograft.kb import read_value_set

    base = open_kb(kb)
    members = read_value_set(base, value_set)
    warn_value_set(members)
    if as_json:
        for row, identifier in members:
            print_json({"id": identifier, "name": base.name_at(row)})
        return
    typer.echo(visible(f"{_described(members)}: {len(members):,} members"))
    for row, identifier in islice(members, limit or None):
        typer.echo(visible(f"  {identifier}  {base.name_at(row)}"))
    if limit and len(members) > limit:
        typer.echo(f"  and {len(members) - limit:,} more (--limit 0: all)")


def _described(members: ValueSetMembers) -> str:
    about = members.resource or {}
    words = (str(about.get(key, "")) for key in ("title", "name", "version"))
    return " ".join(filter(None, words)) or members.name


@app.command()
def diff(
    old: _ValueSet,
    kb: Kb,
    new: Annotated[str | None, typer.Argument(metavar="NEW")] = None,
    old_kb: Annotated[Path | None, "KB"] = None,
    limit: Annotated[int, typer.Option("-k", "--limit", metavar="N", min=0)] = 3,
    exit_code: Annotated[bool, "--exit-code"] = False,
    as_json: Json = False,
) -> None:
    """Compare the members of a value set with those of another, or in an earlier release.

    Of members that are gone the successors are named. Exits with 0 whether or not there are
    changes, unless --exit-code is given; 2 is an error.

    Args:
        new: The later value set; default: the same.
        old_kb: Earlier knowledge base, of VALUE_SET; default, without NEW: the members that the
            file lists (create --expand).
        limit: Maximum examples of each kind; 0: all.
        exit_code: Exit with 1 if anything has changed, otherwise with 0.
    """
    from biograft.kb import diff_value_sets, read_value_set
    from biograft.kb.value_set_files import VALUE_SET_CHANGES, stored_members

    base = open_kb(kb)
    later = read_value_set(base, new or old)
    if new is None and old_kb is None:
        before = stored_members(later)
    else:
        earlier = read_value_set(base if old_kb is None else open_kb(old_kb), old)
        before = [(identifier, earlier.kb.name_at(row)) for row, identifier in earlier]
    changes = diff_value_sets(before, later)
    warn_value_set(later)
    if as_json:
        for change in changes:
            print_json(change.to_json())
    else:
        typer.echo(f"{'members':14} {len(before):>11,} -> {len(later):,}")
        for kind, about in VALUE_SET_CHANGES.items():
            found = [change for change in changes if change.change == kind]
            typer.echo(f"{kind:14} {len(found):>11,}  {about}")
            for change in found[: limit or None]:
                typer.echo(visible(f"{'':28}{change}"))
    if exit_code and changes:
        raise typer.Exit(1)
