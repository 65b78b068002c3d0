"""``biograft map``: a column of local terms to concepts."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from biograft.cli.link_output import Prefer
from biograft.cli.options import (
    REJECTED,
    ConceptSources,
    ConceptTypes,
    Encoding,
    Index,
    Json,
    Kb,
    Languages,
    Overwrite,
    Quiet,
    Threshold,
    print_json,
    report_inputs,
    split_languages,
    split_list,
)
from biograft.errors import ConfigError
from biograft.progress import Progress

if TYPE_CHECKING:
    from biograft.mapping import TermMapping


def map_column(
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="CSV, TSV or JSON lines.")],
    column: Annotated[
        str,
        typer.Option("--column", metavar="NAME", help="Column of the terms, by name or as #1."),
    ],
    kb: Kb,
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="OUT", help="Table to write, .csv or .tsv.")
    ],
    index: Index = None,
    code_column: Annotated[
        str,
        typer.Option("--code-column", metavar="NAME", help="Column of the codes of the terms."),
    ] = "",
    encoding: Encoding = "utf-8",
    k: Annotated[
        int, typer.Option("-k", metavar="N", min=1, help="Maximum concepts given for a term.")
    ] = 3,
    threshold: Threshold = None,
    types: ConceptTypes = "",
    sources: ConceptSources = "",
    lang: Languages = "",
    prefer: Prefer = "",
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Map a column of local terms to concepts, one row a distinct term.

    The exit status is 1 if rows were left out because they are damaged.
    """
    from biograft.corpus.inputs import TABLE, InputConfig, Inputs
    from biograft.kb import KnowledgeBase
    from biograft.linking import Linker
    from biograft.linking.outputs import ConceptIds
    from biograft.mapping import SourceTerm, distinct_terms, map_terms, write_mapping
    from biograft.mapping.table import DELIMITERS

    to = out.suffix.removeprefix(".").lower()
    if to not in DELIMITERS:
        raise ConfigError(f"--out: expected a file that ends in .csv or .tsv, found {out.name!r}")
    started, progress = time.perf_counter(), Progress(enabled=not quiet)
    config = InputConfig(format=TABLE, column=column, id_column=code_column, encoding=encoding)
    inputs = Inputs([table], config)
    progress.start("read")
    rows = (SourceTerm(row.text, row.id if code_column else "") for row in inputs)
    terms = distinct_terms(rows)
    base = KnowledgeBase.open(kb)
    linker = Linker.open(
        base, index, k=k, threshold=threshold, types=split_list(types),
        sources=split_list(sources), languages=split_languages(lang),
    )  # fmt: skip
    mapped = _counted(map_terms(linker, terms), len(terms), progress)
    ids = ConceptIds(base, split_list(prefer))
    counts = write_mapping(mapped, out, ids, k=k, to=to, overwrite=overwrite)
    summary = {
        "n_terms": len(terms),
        **{f"n_{flag}": counts[flag] for flag in ("exact", "ambiguous", "nil")},
        "seconds": round(time.perf_counter() - started, 3),
    }
    if as_json:
        print_json({**summary, "out": str(out)})
    else:
        typer.echo("  ".join(f"{key.removeprefix('n_')} {n:,}" for key, n in summary.items()))
    if report_inputs(inputs):
        raise typer.Exit(REJECTED)


def _counted(
    mappings: Iterable[TermMapping], n_terms: int, progress: Progress
) -> Iterator[TermMapping]:
    progress.start("map")
    for n, mapping in enumerate(mappings, 1):
        progress.advance(1, n / n_terms)
        yield mapping
    progress.finish()
