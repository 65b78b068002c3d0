"""``biograft corpus exclude``: remove near-duplicates of test texts from training text."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from biograft.cli.options import Column, Encoding, InputFormat, Json, OutFile, Overwrite, print_json


def exclude(
    texts: Annotated[
        list[Path],
        typer.Argument(
            metavar="TEXT...", help="Training text: a document a line, any format, or tables."
        ),
    ],
    similar_to: Annotated[
        list[Path],
        typer.Option("--similar-to", metavar="FILE", help="Test texts; may be repeated."),
    ],
    out: OutFile,
    n: Annotated[int, typer.Option("--n", metavar="N", help="Length of n-grams.")] = 8,
    min_overlap: Annotated[
        float,
        typer.Option(
            metavar="R",
            help="Ratio of the shorter text's n-grams that near-duplicates share, at least.",
        ),
    ] = 0.6,
    form: InputFormat = "",
    encoding: Encoding = "utf-8",
    column: Column = "",
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Remove near-duplicates of test texts from text to train on.

    Texts are compared by character n-grams; case, width, punctuation and whitespace do not count.
    The text that is left is written one document a line.
    """
    from biograft.artifacts import new_file
    from biograft.corpus.inputs import InputConfig, read_texts
    from biograft.corpus.near_duplicates import NearDuplicateConfig, NearDuplicates

    config = InputConfig(format=form, encoding=encoding, column=column, lines=True)
    near = NearDuplicateConfig(n=n, min_overlap=min_overlap)
    tests = NearDuplicates(read_texts(similar_to, config), near)
    counts = Counter[str](kept=0, removed=0)
    with new_file(out, overwrite=overwrite) as file:
        for text in read_texts(texts, config):
            removed = tests.matches(text)
            counts["removed" if removed else "kept"] += 1
            if not removed:
                file.write(f"{' '.join(text.split())}\n".encode())
    if as_json:
        print_json({"file": str(out), "test_texts": len(tests), **counts})
    else:
        typer.echo(
            f"removed {counts['removed']:,} near-duplicates of {len(tests):,} texts; "
            f"{counts['kept']:,} documents -> {out}"
        )
