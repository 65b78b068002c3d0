"""PubTator, BioC and brat: findings as annotations, by the writers of :mod:`biograft.text`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path, PurePosixPath

from biograft.artifacts import new_folder
from biograft.clinical import AXES
from biograft.linking.candidates import LinkedDocument, LinkedMention
from biograft.linking.outputs.output import Documents, Output, OutputRun, reported
from biograft.text.documents import Document, Mention
from biograft.text.formats.bioc import json_chunks
from biograft.text.formats.brat import write_document
from biograft.text.formats.format import DOCUMENT_FORMATS, Feature, FormatAdapter
from biograft.text.formats.pubtator import document_text


def to_document(linked: LinkedDocument) -> Document:
    """Convert a linked document: the mentions with the concepts they are linked to.

    The parts of a composite become one mention with several concepts. Its type is that of the first
    concept, or else the one that the mention was given with. Attributes are the assertion status
    and the axes that are not the default.

    >>> to_document(linker("No flu.")).mentions[0].concepts  # doctest: +SKIP
    ('D007251',)
    """
    given = {(mention.start, mention.end): mention for mention in linked.document.mentions}
    by_span: dict[tuple[int, int], list[LinkedMention]] = {}
    for mention in linked.mentions:
        by_span.setdefault((mention.start, mention.end), []).append(mention)
    mentions = []
    for span, parts in by_span.items():
        original = given.get(span) or Mention(*span, parts[0].text)
        types = next((part.types for part in parts if part.types), (original.type,))
        concepts = dict.fromkeys(part.concept for part in parts if part.concept is not None)
        forms = tuple(part.form for part in parts) if len(parts) > 1 else ()
        mentions.append(
            replace(
                original,
                concepts=tuple(concepts),
                type=types[0],
                parts=forms,
                attributes=_attributes(parts[0]) or original.attributes,
            )
        )
    return replace(linked.document, mentions=tuple(mentions))


def _attributes(mention: LinkedMention) -> tuple[tuple[str, str], ...]:
    """Return what the text says of a mention, where it is more than its presence."""
    said = [each for each in (mention.axes or {}).items() if each[1] != AXES[each[0]][""]]
    return (("status", mention.status or ""), *said) if said else ()


def _adapted(documents: Documents, run: OutputRun, form: str) -> Iterator[Document]:
    """Convert and adapt the documents to a format; count what is lost."""
    adapter = FormatAdapter(DOCUMENT_FORMATS.load(form), run.losses)
    for number, linked in enumerate(reported(documents, run), 1):
        document = to_document(linked)
        identifier = _IDENTIFIERS[form](document.id) or f"text {number}"
        if identifier != document.id:
            run.losses[str(Feature.DOCUMENT_IDS)] += bool(document.id)
            document = replace(document, id=identifier)
        yield adapter.adapt(document)


def _pubtator_id(identifier: str) -> str:
    return re.sub(r"[|\t\n\r\0]", "_", identifier).strip()


def _brat_id(identifier: str) -> str:
    """Return a name for the files of a document: its path, or the file name of an absolute one."""
    path = PurePosixPath(re.sub(r"[\0\\\n\r]", "_", identifier))
    parts = path.parts[-1:] if path.is_absolute() else path.parts
    name = "/".join(part for part in parts if part not in ("/", ".."))
    return name.removesuffix(".txt")


_IDENTIFIERS: dict[str, Callable[[str], str]] = {
    "pubtator": _pubtator_id,
    "bioc-json": str,
    "brat": _brat_id,
}
"""Spelling of document ids by format."""


def _pubtator(documents: Documents, run: OutputRun) -> Iterator[str]:
    yield from map(document_text, _adapted(documents, run, "pubtator"))


def _bioc(documents: Documents, run: OutputRun) -> Iterator[str]:
    for chunk in json_chunks(_adapted(documents, run, "bioc-json")):
        yield chunk.decode()


def _brat(documents: Documents, run: OutputRun, path: Path, overwrite: bool) -> None:
    """Write a folder; without the documents that a killed run has written to it."""
    if run.work is not None:
        path.mkdir(exist_ok=True)
    opened = nullcontext(path) if run.work is not None else new_folder(path, overwrite=overwrite)
    with opened as folder:
        for document in _adapted(documents, run, "brat"):
            if not run.state.get("replayed"):
                write_document(document, folder)


PUBTATOR = Output(chunks=_pubtator, endings=(".pubtator",), resumable=True, holds_text=True)
BIOC = Output(chunks=_bioc, resumable=True, holds_text=True)
BRAT = Output(write=_brat, needs="folder", resumable=True, holds_text=True)
