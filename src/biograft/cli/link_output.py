"""The output half of ``biograft link``: its options, and what is written where."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biograft.errors import ConfigError

if TYPE_CHECKING:
    from biograft.kb import KnowledgeBase
    from biograft.linking import LinkedDocument

To = Annotated[
    str,
    typer.Option(
        "--to",
        metavar="table|csv|tsv|jsonl|parquet|html|fhir|omop|pubtator|bioc|brat",
        help="Format of the output; default: table.",
    ),
]
OutputFile = Annotated[
    Path | None,
    typer.Option(
        "-o", "--out", metavar="OUT", help="Output file, or folder for brat; default: stdout."
    ),
]
Prefer = Annotated[
    str,
    typer.Option(
        "--prefer",
        metavar="MSH,...",
        help="Report ids of these vocabularies, in order of preference; default: the concept's "
        "own id.",
    ),
]
"""Read by ``split_list``."""
AllIds = Annotated[
    bool, typer.Option("--all-ids", help="Report all ids of each concept, too (ids).")
]
IncludeText = Annotated[
    bool,
    typer.Option(
        "--include-text",
        help="fhir: add the text of each document; omop: fill snippet with the text around "
        "each finding. Without it they have only the text of the mentions.",
    ),
]


def choose_output(to: str, out: Path | None, *, as_json: bool) -> str:
    """Return the name of the output; refuse options that contradict each other."""
    from biograft.linking.outputs import OUTPUTS

    if as_json and to not in ("", "jsonl"):
        raise ConfigError(f"--json: is the same as --to jsonl; leave it out, or --to {to}")
    name = to or ("jsonl" if as_json else "table")
    output = OUTPUTS.load(name)
    if out is None and output.chunks is None:
        raise ConfigError(f"--to {name}: is no text; name the {output.needs} to write (-o)")
    return name


def write_output(
    linked: Iterable[LinkedDocument],
    base: KnowledgeBase,
    to: str,
    out: Path | None,
    *,
    overwrite: bool,
    **settings: Any,
) -> None:
    """Write linked documents to a file or to standard output; say on stderr what was lost."""
    from biograft.linking.outputs import link_chunks, write_linked
    from biograft.linking.outputs.output import encoded

    losses: Counter[str] = Counter()
    if out is not None:
        losses = write_linked(linked, out, to, base, overwrite=overwrite, **settings)
    else:
        # to a file or a program, data go as they are; a terminal shows control characters
        out_stream = sys.stdout if sys.stdout.isatty() else getattr(sys.stdout, "raw", sys.stdout)
        for chunk in link_chunks(linked, to, base, losses, **settings):
            out_stream.write(encoded(chunk).decode())
    for kind, n in losses.most_common():
        typer.echo(f"lost        {n:,}  {kind}", err=True)
    if out is not None:
        typer.echo(f"written     {out} ({to})", err=True)
