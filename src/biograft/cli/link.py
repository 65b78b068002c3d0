"""``biograft link``: entity linking of texts, files and standard input."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from biograft.cli.link_inputs import LinkInputs
from biograft.cli.options import (
    REJECTED,
    Calibration,
    Column,
    Detection,
    Detector,
    Encoding,
    IdColumn,
    Index,
    InputFormat,
    Json,
    Kb,
    Languages,
    LexicalWeight,
    MentionTypes,
    Model,
    NoAbbreviations,
    NoAppositions,
    NoAssertions,
    NoComposites,
    Overwrite,
    Quiet,
    Search,
    Similarity,
    SkipErrors,
    StopFile,
    Threshold,
    split_languages,
    split_list,
    stop_words_of,
)
from biograft.errors import ConfigError
from biograft.progress import Progress

if TYPE_CHECKING:
    from biograft.linking import LinkedDocument


def link(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="TEXT|-|FILE...",
            help="A text, '-' for standard input, files, folders or zip archives.",
        ),
    ],
    kb: Kb,
    index: Index = None,
    model: Model = None,
    calibration: Calibration = None,
    form: InputFormat = "",
    encoding: Encoding = "utf-8",
    column: Column = "",
    id_column: IdColumn = "",
    mentions: Annotated[
        str | None,
        typer.Option(
            "--mentions",
            metavar="given|find|both",
            help="Link the mentions that annotated files have, find mentions in their texts "
            "instead, or both. Default: given where a document has some, else find.",
        ),
    ] = None,
    terms: Annotated[
        bool,
        typer.Option("--terms", help="Treat each line, or row of a table, as one term to link."),
    ] = False,
    skip_errors: SkipErrors = False,
    k: Annotated[int, typer.Option("-k", metavar="N", min=1, help="Candidates per mention.")] = 5,
    threshold: Threshold = None,
    search: Search = None,
    lexical_weight: LexicalWeight = None,
    similarity: Similarity = None,
    detector: Detector = None,
    detection: Detection = None,
    mention_types: MentionTypes = "",
    no_abbreviations: NoAbbreviations = False,
    no_appositions: NoAppositions = False,
    no_composites: NoComposites = False,
    no_assertions: NoAssertions = False,
    lang: Languages = "",
    stop_file: StopFile = None,
    as_json: Json = False,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the result as a web page, too.")
    ] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Find mentions in text, and link them to concepts.

    Files may be plain text, any format of `biograft corpus formats`, or tables; each is recognised
    by its content. Of annotated files the given mentions are linked, elsewhere the names that the
    text contains; with --detector a trained model finds the mentions. Each mention in text is said
    to be present, absent, possible, historical, hypothetical, or of the family. The exit status is
    1 if records or files were left out.
    """
    from biograft.kb import KnowledgeBase
    from biograft.linking import Linker, write_html

    if terms and (detector is not None or mentions is not None):
        other = "--detector" if detector is not None else "--mentions"
        raise ConfigError(f"--terms: takes each line as a mention; leave {other} out")
    reading: dict[str, str | bool] = {
        "format": form, "encoding": encoding, "column": column, "id_column": id_column,
        "skip_errors": skip_errors,
    }  # fmt: skip
    texts = LinkInputs(inputs, reading, terms)
    progress = Progress(enabled=not quiet)
    base = KnowledgeBase.open(kb)
    progress.start("open")
    linker = Linker.open(
        base, index, model, calibration, detector,
        k=k, threshold=threshold,
        detection=detection, mention_types=split_list(mention_types),
        search=search, lexical_weight=lexical_weight, similarity=similarity,
        abbreviations=not no_abbreviations, appositions=not no_appositions,
        composites=not no_composites, assertions=not (no_assertions or terms), mentions=mentions,
        languages=split_languages(lang), stop_words=stop_words_of(stop_file),
    )  # fmt: skip
    linked = _counted(linker.pipe(texts.documents()), progress)
    if terms and not as_json:
        linked = _print_candidates(linked, k)
    else:
        linked = _print(linked, as_json=as_json)
    if html is not None:
        write_html(linked, base, html, overwrite=overwrite)
        typer.echo(f"page written to {html}", err=True)
    for _ in linked:  # without --html nothing has consumed them yet
        pass
    if texts.report():
        raise typer.Exit(REJECTED)


def _counted(linked: Iterable[LinkedDocument], progress: Progress) -> Iterator[LinkedDocument]:
    """Count the documents; their text is never shown."""
    progress.start("link")
    for document in linked:
        progress.advance(1)
        yield document
    progress.finish()


def _print_candidates(linked: Iterable[LinkedDocument], k: int) -> Iterator[LinkedDocument]:
    """Print all mentions as one table, with their candidates, and pass them on."""
    from biograft.linking.output import candidates_table

    documents = list(linked)
    typer.echo(_encodable("\n".join(candidates_table(documents, k))))
    yield from documents


def _print(linked: Iterable[LinkedDocument], *, as_json: bool) -> Iterator[LinkedDocument]:
    """Print each document as soon as it is linked, and pass it on."""
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
    """Escape lone surrogates, which no output encoding has."""
    return text.encode("utf-8", "backslashreplace").decode()
