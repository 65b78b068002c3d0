"""``biograft link``: from text to concepts."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from biograft.cli.link_inputs import read_documents
from biograft.cli.options import (
    Calibration,
    Index,
    Json,
    Kb,
    Languages,
    Model,
    NoAbbreviations,
    NoComposites,
    Overwrite,
    Quiet,
    StopFile,
    Threshold,
    split_languages,
    stop_words_of,
)

if TYPE_CHECKING:
    from biograft.linking import LinkedDocument
    from biograft.progress import Progress


def link(
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="TEXT|-|FILE...", help="A text, '-' for standard input, or files."),
    ],
    kb: Kb,
    index: Index = None,
    model: Model = None,
    calibration: Calibration = None,
    form: Annotated[
        str,
        typer.Option("--format", metavar="text|pubtator", help="Format; default: by the ending."),
    ] = "",
    mentions: Annotated[
        bool, typer.Option("--mentions", help="Take each line as one mention, not as text.")
    ] = False,
    k: Annotated[
        int, typer.Option("-k", metavar="N", min=1, help="Candidates to keep for each mention.")
    ] = 5,
    threshold: Threshold = None,
    no_abbreviations: NoAbbreviations = False,
    no_composites: NoComposites = False,
    lang: Languages = "",
    stop_file: StopFile = None,
    as_json: Json = False,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page to look at there.")
    ] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Find mentions of concepts in text, and say which concepts they are.

    A PubTator file brings its mentions along; elsewhere the names of the knowledge base are found.
    """
    from biograft.kb import KnowledgeBase
    from biograft.linking import Linker, write_html
    from biograft.linking.output import candidates_table
    from biograft.progress import Progress

    progress = Progress(enabled=not quiet)
    base = KnowledgeBase.open(kb)
    progress.start("open")
    linker = Linker.open(
        base, index, model, calibration,
        k=k, threshold=threshold,
        abbreviations=not no_abbreviations, composites=not no_composites,
        languages=split_languages(lang), stop_words=stop_words_of(stop_file),
    )  # fmt: skip
    linked = _counted(linker.pipe(read_documents(inputs, form, mentions=mentions)), progress)
    if mentions and not as_json:
        kept = list(linked)
        typer.echo(_encodable("\n".join(candidates_table(kept, k))))
        linked = iter(kept)
    else:
        linked = _print(linked, as_json=as_json)
    if html is not None:
        write_html(linked, base, html, overwrite=overwrite)
        typer.echo(f"page written to {html}", err=True)
    for _ in linked:
        pass  # each is printed as it comes


def _counted(linked: Iterable[LinkedDocument], progress: Progress) -> Iterator[LinkedDocument]:
    """Show how far the work is, and be quiet about what is in it."""
    progress.start("link")
    for document in linked:
        progress.advance(1)
        yield document
    progress.finish()


def _print(linked: Iterable[LinkedDocument], *, as_json: bool) -> Iterator[LinkedDocument]:
    """Print each document as it comes, and pass it on."""
    from biograft.linking.output import table

    for number, document in enumerate(linked):
        if as_json:
            lines = [json.dumps(document.to_json(), ensure_ascii=False)]
        else:
            lines = table(document)
            if number or document.document.id != "text 1":
                lines = [*([""] if number else []), document.document.id, *lines]
        sys.stdout.write(_encodable("\n".join(lines)) + "\n")
        yield document


def _encodable(text: str) -> str:
    """Write half a surrogate as what it is, since no encoding of an output has it."""
    return text.encode("utf-8", "backslashreplace").decode()
