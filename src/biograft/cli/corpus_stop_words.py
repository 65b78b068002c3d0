"""``biograft corpus stop-words``: names that are ordinary words in text."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from biograft.cli.fields import Offered
from biograft.cli.options import (
    Json,
    Kb,
    OutFile,
    Overwrite,
    Quiet,
    print_json,
)
from biograft.linking.config import LinkerConfig
from biograft.progress import Progress
from biograft.text.input_config import InputConfig


def stop_words(
    texts: Annotated[list[Path], typer.Argument(metavar="TEXT...")],
    kb: Kb,
    out: OutFile,
    reading: Annotated[InputConfig, Offered("format", "encoding", "column", lines=True)],
    linker: Annotated[LinkerConfig, Offered("languages")],
    min_count: Annotated[int, typer.Option(metavar="N", min=1)] = 3,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """List names of KB that are ordinary words in text, with counts, for review.

    Remove the lines of the names that are to be found; the rest is a file for --stop-file.

    Args:
        texts: Ordinary text: a document a line, any document format, or tables.
        min_count: Occurrences of a word in the text.
    """
    from biograft.kb import KnowledgeBase
    from biograft.text import NamesIndex, NamesIndexConfig
    from biograft.text.inputs import read_texts
    from biograft.text.stop_words import StopWordConfig, propose_stop_words, write_stop_words

    base, progress = KnowledgeBase.open(kb), Progress(enabled=not quiet)
    names = NamesIndex.from_store(base, NamesIndexConfig(languages=linker.languages), progress)
    progress.start("read texts")
    words = propose_stop_words(
        names,
        lambda row: base.name(row).text,
        read_texts(texts, reading),
        StopWordConfig(min_count=min_count),
    )
    progress.finish()
    write_stop_words(words, out, overwrite=overwrite)
    if as_json:
        print_json({"file": str(out), "words": [asdict(word) for word in words]})
    else:
        typer.echo(f"{len(words):,} names that may be ordinary words -> {out}; look through them")
