"""``biograft corpus exclude``: remove near-duplicates of test texts from training text."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from biograft.cli.fields import Offered
from biograft.cli.options import Json, OutFile, Overwrite, print_json
from biograft.text.input_config import InputConfig


def exclude(
    texts: Annotated[list[Path], typer.Argument(metavar="TEXT...")],
    similar_to: Annotated[list[Path], "FILE"],
    out: OutFile,
    reading: Annotated[InputConfig, Offered("format", "encoding", "column", lines=True)],
    n: Annotated[int, "N"] = 8,
    min_overlap: Annotated[float, "R"] = 0.6,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Remove near-duplicates of test texts from text to train on.

    Texts are compared by character n-grams; case, width, punctuation and whitespace do not count.
    The text that is left is written one document a line.

    Args:
        texts: Training text: a document a line, any format, or tables.
        similar_to: Test texts; may be repeated.
        n: Length of n-grams.
        min_overlap: Ratio of the shorter text's n-grams that near-duplicates share, at least.
    """
    from biograft.artifacts import new_file
    from biograft.text.inputs import read_texts
    from biograft.text.near_duplicates import NearDuplicateConfig, NearDuplicates

    near = NearDuplicateConfig(n=n, min_overlap=min_overlap)
    tests = NearDuplicates(read_texts(similar_to, reading), near)
    counts = Counter[str](kept=0, removed=0)
    with new_file(out, overwrite=overwrite) as file:
        for text in read_texts(texts, reading):
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
