"""``biograft link``: entity linking of texts, files and standard input."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from biograft.cli.options import (
    Calibration,
    Detection,
    Detector,
    Index,
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
    StopFile,
    Threshold,
    split_languages,
    split_list,
    stop_words_of,
)
from biograft.errors import ConfigError, InputError
from biograft.progress import Progress

if TYPE_CHECKING:
    from biograft.documents import Document
    from biograft.linking import LinkedDocument

FORMATS = ("text", "pubtator")
_FILE_ENDINGS = (".txt", ".pubtator", ".gz", ".md", ".csv", ".tsv", ".json", ".jsonl")
"""An argument without whitespace that ends so must be a file."""


def read_documents(inputs: Sequence[str], form: str, *, mentions: bool) -> Iterator[Document]:
    """Read the documents of all inputs; with ``mentions`` each line is one mention."""
    from biograft.documents import Document

    if form not in ("", *FORMATS):
        raise ConfigError(f"--format: expected one of {', '.join(FORMATS)}, found {form!r}")
    if mentions and form == "pubtator":
        raise ConfigError("--mentions: is for plain lines; PubTator files name their own mentions")
    for number, given in enumerate(inputs, 1):
        path = _path_of(given)
        if path is not None and not mentions and _is_pubtator(path, form):
            from biograft.corpus import read_pubtator

            yield from read_pubtator(path)
            continue
        name = "stdin" if given == "-" else str(path) if path else f"text {number}"
        text = _read_text(given, path)
        if mentions:
            yield from _mention_lines(name, text)
        else:
            yield Document(name, text)


def _path_of(given: str) -> Path | None:
    """Return the file that an argument names, if any; what looks like a file must exist."""
    if given == "-" or not given.strip():
        return None
    path = Path(given)
    try:
        exists = path.exists()
    except (OSError, ValueError):  # too long, or with characters that no file name has: a text
        return None
    if not exists and given.endswith(_FILE_ENDINGS) and not any(map(str.isspace, given)):
        raise InputError("does not exist", path=given, remedy="check the path")
    return path if exists else None


def _is_pubtator(path: Path, form: str) -> bool:
    name = path.name.removesuffix(".gz")
    return form == "pubtator" or (not form and name.lower().endswith(".pubtator"))


def _read_text(given: str, path: Path | None) -> str:
    from biograft.sources.files import decode, read_text

    if given == "-":
        return decode(sys.stdin.buffer.read(), Path("stdin"), 1, "utf-8")
    if path is None:
        return given
    return read_text(path) if path.is_dir() or path.stat().st_size else ""


def _mention_lines(name: str, text: str) -> Iterator[Document]:
    from biograft.documents import Document, Mention

    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield Document(f"{name}:{number}", line, (Mention(0, len(line), line),))


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
        typer.Option("--format", metavar="text|pubtator", help="Format; default: by file name."),
    ] = "",
    mentions: Annotated[
        bool, typer.Option("--mentions", help="Treat each line as one mention.")
    ] = False,
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

    In a PubTator file its own mentions are linked, elsewhere the names that the text contains.
    With --detector a trained model finds the mentions, in PubTator files, too. Each mention in
    text is said to be present, absent, possible, historical, hypothetical, or of the family.
    """
    from biograft.kb import KnowledgeBase
    from biograft.linking import Linker, write_html

    if mentions and detector is not None:
        raise ConfigError("--mentions: takes each line as a mention; leave --detector out")
    progress = Progress(enabled=not quiet)
    base = KnowledgeBase.open(kb)
    progress.start("open")
    linker = Linker.open(
        base, index, model, calibration, detector,
        k=k, threshold=threshold,
        detection=detection, mention_types=split_list(mention_types),
        search=search, lexical_weight=lexical_weight, similarity=similarity,
        abbreviations=not no_abbreviations, appositions=not no_appositions,
        composites=not no_composites, assertions=not (no_assertions or mentions),
        languages=split_languages(lang), stop_words=stop_words_of(stop_file),
    )  # fmt: skip
    linked = _counted(linker.pipe(read_documents(inputs, form, mentions=mentions)), progress)
    if mentions and not as_json:
        linked = _print_candidates(linked, k)
    else:
        linked = _print(linked, as_json=as_json)
    if html is not None:
        write_html(linked, base, html, overwrite=overwrite)
        typer.echo(f"page written to {html}", err=True)
    for _ in linked:  # without --html nothing has consumed them yet
        pass


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
