"""Annotations that were corrected on the page, in any document format or output of findings."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Query, Response
from pydantic import Field

from biograft.clinical import AXES, Assertion
from biograft.clinical.assertion import FLAG_OF, status_of
from biograft.clinical.rules import IMPLIED
from biograft.config import check_choice
from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.linking import Candidate, LinkedDocument, LinkedMention
from biograft.linking.outputs import OUTPUTS, link_chunks
from biograft.linking.outputs.annotations import to_document
from biograft.serve.schemas import Request, Span
from biograft.text.documents import Document, Mention
from biograft.text.formats import DOCUMENT_FORMATS, write_documents

MEDIA_TYPES = {name: each.media_type for name, each in OUTPUTS.load_all() if each.media_type}
"""Media types of the outputs of findings that are text."""
_DOCUMENTS = tuple(n for n, each in DOCUMENT_FORMATS.load_all() if each.write is not None)
EXPORTS = (*_DOCUMENTS, *(name for name in MEDIA_TYPES if name not in _DOCUMENTS))
_ENDINGS = dict.fromkeys(("fhir", "bioc-json", "cmeee"), "json") | {"omop": "csv", "jsonl": "jsonl"}
_ENDINGS |= {"csv": "csv", "tsv": "tsv", "bioc-xml": "xml", "ddi": "xml"}
_ZIP, _TEXT = "application/zip", "text/plain; charset=utf-8"
Responses = Mapping[int | str, dict[str, Any]]
_MEMORY = Path("/dev/shm")
"""A file system in memory, so that no text of a note is written to a disk."""
To = Annotated[str, Query(description="Format.", json_schema_extra={"enum": list(EXPORTS)})]
Word = Annotated[str | None, Field(max_length=1000)]


class CorrectedMention(Request):
    """A mention as it was corrected."""

    start: Span
    end: Span
    concept: Word = None
    name: Word = None
    score: float | None = None
    types: list[str] | None = None
    status: Word = None
    axes: dict[str, str] | None = Field(None, description="Such as polarity: negated.")
    section: Word = None


class ExportRequest(Request):
    """A text with its mentions."""

    text: str
    id: str = "note"
    mentions: list[CorrectedMention]


def add_export(
    app: FastAPI, kb: Callable[[], KnowledgeBase], max_text: int, errors: Responses
) -> None:
    """Add the route that writes corrected annotations.

    Args:
        app: The application.
        kb: Gives the knowledge base of the concepts.
        max_text: Characters of a text; more is refused.
        errors: Descriptions of its answers that are errors.
    """
    types = sorted({*MEDIA_TYPES.values(), _ZIP, _TEXT})
    written: dict[str, dict[str, object]] = {
        media_type.partition(";")[0]: {} for media_type in types
    }

    @app.post(
        "/v1/export",
        summary="Write a text with corrected mentions in a format",
        response_class=Response,
        responses={**errors, 200: {"content": written}},
    )
    def export(asked: ExportRequest, to: To = "jsonl") -> Response:
        check_choice("to", to, EXPORTS)
        if len(asked.text) > max_text:
            raise ConfigError(f"text: a text has at most {max_text} characters")
        losses: Counter[str] = Counter()
        if to in _DOCUMENTS:
            content, is_folder = _written(to_document(_linked(asked, to)), to, losses)
            media_type = _ZIP if is_folder else _TEXT
            ending = "zip" if is_folder else _ENDINGS.get(to, "txt")
        else:
            chunks = link_chunks([_linked(asked, to)], to, kb(), losses)
            content = "".join(chunks).encode("utf-8", "backslashreplace")
            media_type, ending = MEDIA_TYPES[to], _ENDINGS[to]
        lost = ", ".join(f"{kind} ({n})" for kind, n in losses.items())
        headers = {"content-disposition": f'attachment; filename="note.{ending}"', "x-lost": lost}
        return Response(content, media_type=media_type, headers=headers)


def _linked(asked: ExportRequest, to: str) -> LinkedDocument:
    """Return a corrected text as a linker would: for documents with the status as attributes."""
    given, linked = [], []
    for each in asked.mentions:
        if not each.start < each.end <= len(asked.text):
            raise ConfigError("mentions: a span does not fit the text")
        axes = each.axes or {}
        for axis, value in axes.items():
            if value not in FLAG_OF.get(axis, ()):
                raise ConfigError("axes: expected axes and values of docs/clinical.md")
        span, types = asked.text[each.start : each.end], tuple(each.types or ())
        said = [(axis, value) for axis, value in axes.items() if value != AXES[axis][""]]
        attributes = (("status", each.status), *said) if each.status else ()
        given.append(Mention(each.start, each.end, span, attributes=attributes))
        name, score = each.name or each.concept or "", each.score or 0.0
        candidate = Candidate(each.concept or "", name, name, score, types=types)
        linked.append(
            LinkedMention(
                each.start,
                each.end,
                span,
                span,
                (candidate,) if each.concept else (),
                each.concept,
                None if to in _DOCUMENTS or each.axes is None else _assertion(axes, each.section),
            )
        )
    document = Document(asked.id, asked.text, tuple(given))
    return LinkedDocument(document, tuple(linked))


def _assertion(axes: dict[str, str], section: str | None) -> Assertion:
    """Return the assertion that axes mean: the flags that give their values."""
    flags = {FLAG_OF[axis][value] for axis, value in axes.items()} - {""}
    flags |= {IMPLIED[flag] for flag in flags if flag in IMPLIED}
    held = dict.fromkeys(flags, True)
    return Assertion(**held, status=status_of(flags), section=section or "")  # type: ignore[arg-type]


def _written(document: Document, to: str, losses: Counter[str]) -> tuple[bytes, bool]:
    """Write a document; return the file, or a zip archive of a folder, and whether it is one."""
    memory = _MEMORY if _MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        path = Path(folder) / "note"
        losses.update(write_documents([document], path, to))
        if not path.is_dir():
            return path.read_bytes(), False
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(path.rglob("*")):
                archive.write(file, file.relative_to(path))
        return packed.getvalue(), True
