"""``biograft match``: the concepts of one knowledge base that are those of another."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from biograft.cli.fields import Offered
from biograft.cli.options import Json, Overwrite, Quiet, note_without_index, open_kb, print_json
from biograft.mapping.config import MatchConfig
from biograft.progress import Progress


def match(
    subjects: Annotated[Path, typer.Argument(metavar="KB_A")],
    targets: Annotated[Path, typer.Argument(metavar="KB_B")],
    out: Annotated[Path, "-o", "--out", "SET"],
    matching: Annotated[MatchConfig, Offered()],
    index: Annotated[Path | None, "INDEX"] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Match the concepts of two knowledge bases; write a mapping set.

    Names, synonyms, parents, children and cross-references decide; each match has a confidence.
    A concept without a match is placed under the match of its nearest ancestor (broadMatch).
    Review the result with `biograft review import`.

    Args:
        subjects: Folder of the knowledge base whose concepts are matched.
        targets: Folder of the knowledge base that they are matched with.
        out: SSSOM file to write (.sssom.tsv).
        index: Index of KB_B, to search its vectors, too; default: names alone, in memory.
    """
    from biograft.linking.index import open_search
    from biograft.mapping.matching import as_set, match_stores

    started, progress = time.perf_counter(), Progress(enabled=not quiet)
    first, second = open_kb(subjects), open_kb(targets)
    note_without_index(second, index, quiet=quiet)
    search = open_search(second, index).search
    matches = match_stores(first, second, search, matching, progress)
    as_set(matches, first, second).write(out, overwrite=overwrite)
    counts = Counter(each.relation for each in matches)
    n_matched = counts["exact"] + counts["broad"]
    summary = {
        "n_exact": counts["exact"],
        "n_broad": counts["broad"],
        "n_unmatched": len(first) - n_matched,
        "seconds": round(time.perf_counter() - started, 3),
    }
    if as_json:
        print_json({**summary, "out": str(out)})
    else:
        words = (f"{key.removeprefix('n_')} {n:,}" for key, n in summary.items())
        typer.echo("  ".join(words))
