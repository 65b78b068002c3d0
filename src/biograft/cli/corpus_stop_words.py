"""``biograft corpus stop-words``: names that are ordinary words in text."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from biograft.cli.options import (
    Column,
    Encoding,
    InputFormat,
    Json,
    Kb,
    Languages,
    OutFile,
    Overwrite,
    Quiet,
    print_json,
    split_languages,
)
from biograft.progress import Progress


def stop_words(
    texts: Annotated[
        list[Path],
        typer.Argument(
            metavar="TEXT...",
            help="Ordinary text: a document a line, any document format, or tables.",
        ),
    ],
    kb: Kb,
    out: OutFile,
    min_count: Annotated[
        int, typer.Option(metavar="N", min=1, help="Occurrences of a word in the text.")
    ] = 3,
    form: InputFormat = "",
    encoding: Encoding = "utf-8",
    column: Column = "",
    lang: Languages = "",
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """List names of KB that are ordinary words in text, with counts, for review.

    Remove the lines of the names that are to be found; the rest is a file for --stop-file.
    """
    from biograft.corpus import NamesIndex, NamesIndexConfig
    from biograft.corpus.inputs import InputConfig, read_texts
    from biograft.corpus.stop_words import StopWordConfig, propose_stop_words, write_stop_words
    from biograft.kb import KnowledgeBase

    base, progress = KnowledgeBase.open(kb), Progress(enabled=not quiet)
    config = InputConfig(format=form, encoding=encoding, column=column, lines=True)
    names = NamesIndex.from_store(base, NamesIndexConfig(languages=split_languages(lang)), progress)
    progress.start("read texts")
    words = propose_stop_words(
        names,
        lambda row: base.name(row).text,
        read_texts(texts, config),
        StopWordConfig(min_count=min_count),
    )
    progress.finish()
    write_stop_words(words, out, overwrite=overwrite)
    if as_json:
        print_json({"file": str(out), "words": [asdict(word) for word in words]})
    else:
        typer.echo(f"{len(words):,} names that may be ordinary words -> {out}; look through them")
