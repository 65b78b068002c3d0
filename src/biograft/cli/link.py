"""What ``biograft link`` is given: texts, files, standard input; always as documents."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

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
from biograft.errors import ConfigError, InputError

if TYPE_CHECKING:
    from biograft.documents import Document
    from biograft.linking import LinkedDocument
    from biograft.progress import Progress

FORMS = ("text", "pubtator")
_FILE_ENDS = (".txt", ".pubtator", ".gz", ".md", ".csv", ".tsv", ".json", ".jsonl")
"""An argument that ends so, without blanks in it, is meant as a file."""


def read_documents(inputs: Sequence[str], form: str, *, mentions: bool) -> Iterator[Document]:
    """Give the documents of all inputs; with ``mentions`` each line is one, and all of it is."""
    if form not in ("", *FORMS):
        raise ConfigError(f"--format: expected one of {', '.join(FORMS)}, found {form!r}")
    if mentions and form == "pubtator":
        raise ConfigError("--mentions: is for plain lines; PubTator files name their own mentions")
    for number, each in enumerate(inputs, 1):
        path = _file_of(each)
        if path is not None and not mentions and _is_pubtator(path, form):
            from biograft.corpus import read_pubtator

            yield from read_pubtator(path)
            continue
        name = "stdin" if each == "-" else str(path) if path else f"text {number}"
        text = _read(each, path)
        if mentions:
            yield from _lines(name, text)
        else:
            yield _document(name, text)


def _document(name: str, text: str) -> Document:
    from biograft.documents import Document

    return Document(name, text)


def _lines(name: str, text: str) -> Iterator[Document]:
    from biograft.documents import Document, Mention

    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield Document(f"{name}:{number}", line, (Mention(0, len(line), line),))


def _read(given: str, path: Path | None) -> str:
    from biograft.sources.files import decode, read_text

    if given == "-":
        return decode(sys.stdin.buffer.read(), Path("stdin"), 1, "utf-8")
    if path is None:
        return given
    return read_text(path) if path.is_dir() or path.stat().st_size else ""


def _is_pubtator(path: Path, form: str) -> bool:
    name = path.name.removesuffix(".gz")
    return form == "pubtator" or (not form and name.lower().endswith(".pubtator"))


def _file_of(given: str) -> Path | None:
    """Say which file an argument names; one that is clearly meant as a file must be there."""
    if given == "-" or not given.strip():
        return None
    path = Path(given)
    try:
        there = path.exists()
    except (OSError, ValueError):  # too long, or with signs that no name has: a text
        return None
    if not there and given.endswith(_FILE_ENDS) and not any(map(str.isspace, given)):
        raise InputError("does not exist", path=given, remedy="check the path")
    return path if there else None


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
