"""``biograft graph neighbours``: the best neighbours of every entity of a store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biograft.cli.options import Folder, Json, Overwrite, Quiet, Store, split_list
from biograft.errors import ConfigError, FormatError

if TYPE_CHECKING:
    from biograft.kb import KnowledgeBase


def neighbours(
    kb: Store,
    out: Folder,
    k: Annotated[int, typer.Option("-k", metavar="K", help="Neighbours to keep.")] = 10,
    damping: Annotated[float, typer.Option(metavar="A", help="Chance to jump.")] = 0.15,
    normalise: Annotated[
        str, typer.Option(metavar="columns|rows|symmetric", help="How the adjacency is normalised.")
    ] = "columns",
    rounds: Annotated[
        int, typer.Option(metavar="N", help="Rounds, up to 6, from the start; 0: the fixed point.")
    ] = 0,
    frequencies: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Start of few rounds: lines of id, tab, count."),
    ] = None,
    samples: Annotated[
        int, typer.Option(metavar="M", help="Start of entities without count: 1/M; 0: M = all.")
    ] = 0,
    relations: Annotated[
        str, typer.Option(metavar="is-a,...", help="Join by these relations only.")
    ] = "",
    refine: Annotated[
        bool, typer.Option("--refine", help="Solve exactly the entities whose choice is not sure.")
    ] = False,
    exact: Annotated[
        bool, typer.Option("--exact", help="Solve every entity exactly; slow.")
    ] = False,
    tolerance: Annotated[
        float, typer.Option(metavar="E", help="How far an exact score may be off.")
    ] = 1e-9,
    threads: Annotated[int, typer.Option(metavar="N", help="Threads; 0: one for each core.")] = 0,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Keep the K best neighbours of every entity by personalised entity PageRank.

    A table with relation, direction and type of each, to be read by row of the knowledge base.
    Work that was interrupted goes on where it was when the command is given again.
    """
    from biograft.graph.neighbours import build_neighbours
    from biograft.graph.pepr import PeprConfig
    from biograft.kb import KnowledgeBase
    from biograft.progress import Progress

    if frequencies and not rounds:
        raise ConfigError(
            "--frequencies: the fixed point does not depend on the start; give --rounds too"
        )
    if samples and not frequencies:
        raise ConfigError("--samples: is about the start; give --frequencies too")
    if samples < 0:
        raise ConfigError(f"--samples: expected 0 or more, found {samples}")
    config = PeprConfig(
        k=k,
        damping=damping,
        normalise=normalise,
        rounds=rounds,
        refine=refine,
        exact=exact,
        tolerance=tolerance,
        relations=split_list(relations),
        threads=threads,
    )
    base, progress = KnowledgeBase.open(kb), Progress(enabled=not quiet)
    start = _read_start(base, frequencies, samples) if frequencies else None
    manifest = build_neighbours(
        base, out, config, start=start,
        overwrite=overwrite, progress=progress,
    )  # fmt: skip
    seconds = round(sum(progress.seconds.values()), 3)
    if as_json:
        typer.echo(json.dumps({"neighbours": str(out), **manifest, "seconds": seconds}))
        return
    typer.echo(
        f"{manifest['n_edges']:,} edges to the best {k} neighbours of {manifest['n_linked']:,} "
        f"entities ({manifest['n_unsure']:,} unsure, {manifest['n_refined']:,} solved exactly) "
        f"in {seconds:.1f} s: {out}"
    )


def _read_start(base: KnowledgeBase, path: Path, samples: int) -> Any:
    """Read frequencies: count / sum for entities that occur, 1 / samples for others."""
    import numpy as np

    from biograft.sources.files import read_lines

    counts = np.zeros(len(base))
    for number, line in read_lines(path):
        identifier, _, count = line.partition("\t")
        if not count.isdecimal():
            raise FormatError("expected id, tab, count", path=path, line=number, text=line)
        row = base.find_row(identifier)
        if row is None:
            raise FormatError("no concept has this id", path=path, line=number, text=line)
        counts[row] += int(count)
    if not counts.sum():
        raise FormatError("no entity occurs", path=path)
    return np.where(counts > 0, counts / counts.sum(), 1 / (samples or len(base)))
