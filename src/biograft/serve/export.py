"""Annotations in files: opened on the page, corrected there, compared, and written in any format.

A mention that was opened keeps its own values (``given``); where the page changed none of those
that it shows, it is written as it was.
"""

from __future__ import annotations

import base64
import binascii
import io
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import FastAPI, Query, Response
from pydantic import Field

from biograft.clinical import AXES, Assertion
from biograft.clinical.assertion import FLAG_OF, status_of
from biograft.clinical.rules import IMPLIED
from biograft.config import check_choice
from biograft.errors import ConfigError, InputError
from biograft.evaluation import compare_annotators
from biograft.kb import KnowledgeBase
from biograft.kb.sources.files import open_zip, read_members
from biograft.kb.sources.log import ReadLog
from biograft.linking import Candidate, LinkedDocument, LinkedMention
from biograft.linking.outputs import OUTPUTS, link_chunks
from biograft.mapping.status_learning import flags_of, said_of
from biograft.serve.config import ServiceConfig
from biograft.serve.engine import in_language, json_answer
from biograft.serve.schemas import Request, Span
from biograft.text.documents import Document, Mention
from biograft.text.formats import DOCUMENT_FORMATS, write_documents
from biograft.text.formats.format import MalformedError
from biograft.text.formats.jsonl import from_json, to_json
from biograft.text.input_config import InputConfig
from biograft.text.inputs import Inputs
from biograft.text.rich_text import packed_kind
from biograft.text.virtual_files import is_zip

MEDIA_TYPES = {name: each.media_type for name, each in OUTPUTS.load_all() if each.media_type}
"""Media types of the outputs of findings that are text."""
_DOCUMENTS = tuple(n for n, each in DOCUMENT_FORMATS.load_all() if each.write is not None)
EXPORTS = (*_DOCUMENTS, *(name for name in MEDIA_TYPES if name not in _DOCUMENTS))
_ENDINGS = dict.fromkeys(("fhir", "bioc-json", "cmeee"), "json") | {"omop": "csv", "jsonl": "jsonl"}
_ENDINGS |= {"csv": "csv", "tsv": "tsv", "bioc-xml": "xml", "ddi": "xml"}
_ZIP, _TEXT = "application/zip", "text/plain; charset=utf-8"
Responses = dict[int | str, dict[str, Any]]
_MEMORY = Path("/dev/shm")
"""A file system in memory, so that no text of a note is written to a disk."""
To = Annotated[str, Query(description="Format.", json_schema_extra={"enum": list(EXPORTS)})]
_BODY = Path("body")
Word = Annotated[str | None, Field(max_length=1000)]


class OpenedFile(Request):
    """A file of annotations or text, or a zip archive of such."""

    name: Annotated[str, Field(min_length=1, max_length=500)]
    content: str = Field(description="Its bytes in base64.")


class OpenRequest(Request):
    """Files that are opened together, such as the .txt and .ann of brat."""

    files: list[OpenedFile]
    format: str = Field("", description="Document format; default: detect by content.")


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
    corrected: list[str] = Field([], description="Axes that are stated though they are default.")
    section: Word = None
    given: dict[str, Any] | None = Field(None, description="The mention as it was opened.")


class CorrectedDocument(Request):
    """A text with its mentions."""

    id: str = "note"
    text: str
    mentions: list[CorrectedMention]
    given: dict[str, Any] = Field({}, description="Passages and relations of the opened document.")


class ExportRequest(Request):
    """Documents to write."""

    documents: list[CorrectedDocument]


class AgreementRequest(Request):
    """The same documents, as two people annotated them."""

    first: list[CorrectedDocument]
    second: list[CorrectedDocument]


def add_annotations(
    app: FastAPI, kb: Callable[[], KnowledgeBase], limits: ServiceConfig, errors: Responses
) -> None:
    """Add the routes that open, compare and write annotations.

    Args:
        app: The application.
        kb: Gives the knowledge base of the concepts.
        limits: Limits of requests.
        errors: Descriptions of answers that are errors.
    """
    types = sorted({*MEDIA_TYPES.values(), _ZIP, _TEXT})
    written: dict[str, dict[str, object]] = {
        media_type.partition(";")[0]: {} for media_type in types
    }

    def corrected(asked: Sequence[CorrectedDocument]) -> list[LinkedDocument]:
        _check_texts((each.text for each in asked), limits)
        entries = _Entries(kb())
        return [_corrected(each, entries) for each in asked]

    @app.post("/v1/open", summary="Read annotated files of any format", responses=errors)
    def open_files(asked: OpenRequest) -> Response:
        found, forms, n_rejected = _read(asked, limits)
        _check_texts((each.text for each in found), limits)
        entries = _Entries(kb())
        documents = [_opened(each, entries) for each in found]
        return json_answer({"documents": documents, "formats": forms, "n_rejected": n_rejected})

    @app.post("/v1/agreement", summary="Agreement of two annotators", responses=errors)
    def agreement(asked: AgreementRequest) -> Response:
        sides = [
            [each.document for each in corrected(side)] for side in (asked.first, asked.second)
        ]
        return json_answer(compare_annotators(*sides).to_json())

    @app.post(
        "/v1/export",
        summary="Write documents with corrected mentions in a format",
        response_class=Response,
        responses={**errors, 200: {"content": written}},
    )
    def export(asked: ExportRequest, to: To = "jsonl") -> Response:
        check_choice("to", to, EXPORTS)
        documents = corrected(asked.documents)
        losses: Counter[str] = Counter()
        if to in _DOCUMENTS:
            content, is_folder = _written([each.document for each in documents], to, losses)
            media_type = _ZIP if is_folder else _TEXT
            ending = "zip" if is_folder else _ENDINGS.get(to, "txt")
        else:
            chunks = link_chunks(documents, to, kb(), losses)
            content = "".join(chunks).encode("utf-8", "backslashreplace")
            media_type, ending = MEDIA_TYPES[to], _ENDINGS[to]
        lost = ", ".join(f"{in_language(kind)} ({n})" for kind, n in losses.items())
        headers = {
            "content-disposition": f'attachment; filename="note.{ending}"',
            "x-lost": quote(lost, " ,()"),
        }
        return Response(content, media_type=media_type, headers=headers)


def _check_texts(texts: Iterator[str], limits: ServiceConfig) -> None:
    if any(len(text) > limits.max_text for text in texts):
        raise ConfigError(f"text: a text has at most {limits.max_text} characters")


# ---- files


@contextmanager
def _folder() -> Iterator[Path]:
    """Make a folder, in memory where that can be, and remove it."""
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as name:
        yield Path(name)


def _read(asked: OpenRequest, limits: ServiceConfig) -> tuple[list[Document], list[str], int]:
    """Read files; return their documents, formats, and the number of rejected records.

    An error says what is wrong and where, and nothing of what a file holds.
    """
    with _folder() as folder:
        try:
            for each in asked.files:
                path = _place(folder, each.name)
                path.write_bytes(base64.b64decode(each.content, validate=True))
                if is_zip(path) and not packed_kind(path):
                    _unpack(path, folder, limits)
            inputs = Inputs([folder], InputConfig(format=asked.format))
            documents: list[Document] = []
            forms: dict[str, None] = {}
            for file in inputs.files():
                forms[file.form] = None
                for read in inputs.read(file):
                    name = read.id.removeprefix(f"{folder}/")
                    documents.append(replace(read, id=name))
        except binascii.Error:
            raise ConfigError("content: expected bytes in base64") from None
        except InputError as error:
            line = f" (line {error.line})" if error.line else ""
            raise ConfigError(f"files: {error.problem}{line}; {error.remedy}") from None
        return documents, list(forms), inputs.log.rejected.counts.total()


def _place(folder: Path, name: str) -> Path:
    """Return a new path below a folder."""
    parts = PurePosixPath(name).parts
    path = folder.joinpath(*parts)
    if not parts or "\0" in name or {"..", "/"} & set(parts) or path.exists():
        raise ConfigError("files: expected names of files, each of its own")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _unpack(path: Path, folder: Path, limits: ServiceConfig) -> None:
    """Put the files of a zip archive in its place."""
    with open_zip(path) as archive:
        names = [each.filename for each in archive.infolist() if not each.is_dir()]
        for name, data in read_members(archive, path, names, limits.max_body):
            _place(folder, name).write_bytes(data)
    path.unlink()


def _written(documents: Sequence[Document], to: str, losses: Counter[str]) -> tuple[bytes, bool]:
    """Write documents; return the file, or a zip archive of a folder, and whether it is one."""
    with _folder() as folder:
        path = folder / "note"
        losses.update(write_documents(documents, path, to))
        if not path.is_dir():
            return path.read_bytes(), False
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(path.rglob("*")):
                archive.write(file, file.relative_to(path))
        return packed.getvalue(), True


# ---- mentions as the page shows them, and as they were corrected


class _Entries:
    """Concepts of a knowledge base by the ids that files have.

    Args:
        kb: The knowledge base.
    """

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb
        self.candidate = cache(self._candidate)

    def _candidate(self, identifier: str) -> Candidate:
        bare = identifier.rpartition(":")[2]
        rows = (self._kb.find_row(each) for each in (identifier, bare) if each)
        row = next((each for each in rows if each is not None), None)
        if row is None:
            return Candidate(identifier, "", "", 1.0)
        concept = self._kb.concept_at(row)
        codes = tuple(each.code for each in concept.types)
        return Candidate(concept.id, concept.name, concept.name, 1.0, types=codes)


def _opened(document: Document, entries: _Entries) -> dict[str, Any]:
    """Return a document for the page; ``given`` keeps all that it has."""
    given = to_json(document)
    marks = given.pop("mentions", [])
    mentions = [
        {"start": mention.start, "end": mention.end, "text": mention.text, "given": mark}
        | _shown(mention, entries)
        for mention, mark in zip(document.mentions, marks, strict=True)
    ]
    return {"id": given.pop("id"), "text": given.pop("text"), "mentions": mentions, "given": given}


def _shown(mention: Mention, entries: _Entries) -> dict[str, Any]:
    """Return concept, types, status and axes of a mention as the page shows them."""
    candidates = [entries.candidate(each) for each in mention.concepts]
    said = said_of(mention)
    flags = flags_of(said)
    return {
        "concept": candidates[0].concept if candidates else None,
        "name": " + ".join(each.concept_name for each in candidates) or None,
        "types": list(candidates[0].types if candidates else ()) or [mention.type],
        "status": said.get("status") or (status_of(flags) if said else None),
        "axes": _assertion(flags, None).axes if said else None,
    }


def _corrected(asked: CorrectedDocument, entries: _Entries) -> LinkedDocument:
    """Return a corrected text as a linker would, its document with the corrected mentions."""
    given = [each.given for each in asked.mentions if each.given is not None]
    value = {**asked.given, "id": asked.id, "text": asked.text, "mentions": given}
    try:
        document = from_json(value, ReadLog(_BODY), _BODY)
    except MalformedError as error:
        raise ConfigError(f"given: {error}") from None
    if len(document.mentions) != len(given):
        raise ConfigError("given: a mention does not fit the text")
    originals = iter(document.mentions)
    mentions: list[Mention] = []
    linked: list[LinkedMention] = []
    for each in asked.mentions:
        if not each.start < each.end <= len(asked.text):
            raise ConfigError("mentions: a span does not fit the text")
        for axis, value_of in (each.axes or {}).items():
            if value_of not in FLAG_OF.get(axis, ()):
                raise ConfigError("axes: expected axes and values of docs/clinical.md")
        span = asked.text[each.start : each.end]
        original = Mention(each.start, each.end, span) if each.given is None else next(originals)
        mention = _changed(original, each, span, entries)
        mentions.append(mention)
        candidates = [entries.candidate(i) for i in mention.concepts]
        if len(candidates) == 1:  # as it was linked
            found, name = candidates[0], each.name or each.concept or ""
            score, types = each.score or 0.0, found.types or tuple(each.types or ())
            candidates = [Candidate(each.concept or "", name, name, score, types=types)]
        flags = {FLAG_OF[axis][chosen] for axis, chosen in (each.axes or {}).items()}
        assertion = None if each.axes is None else _assertion(flags, each.section)
        here = (each.start, each.end, span, span)
        linked += [LinkedMention(*here, (c,), c.concept, assertion) for c in candidates] or [
            LinkedMention(*here, assertion=assertion)
        ]
    return LinkedDocument(replace(document, mentions=tuple(mentions)), tuple(linked))


def _changed(original: Mention, asked: CorrectedMention, span: str, entries: _Entries) -> Mention:
    """Return a mention with what was corrected of it; all else stays."""
    shown, mention = _shown(original, entries), original
    if (asked.start, asked.end) != (original.start, original.end):
        mention = replace(mention, start=asked.start, end=asked.end, text=span, fragments=())
    if asked.concept != shown["concept"]:
        kind = original.type or (asked.types or [""])[0]
        concepts = (asked.concept,) if asked.concept else ()
        mention = replace(
            mention, concepts=concepts, parts=(), type=kind if concepts else original.type
        )
    if asked.status and (asked.status, asked.axes) != (shown["status"], shown["axes"]):
        stated = {*said_of(original), *asked.corrected}
        axes = {a: v for a, v in (asked.axes or {}).items() if v != AXES[a][""] or a in stated}
        said = {"status": asked.status, **axes}
        others = [each for each in mention.attributes if each[0].lower() not in ("status", *AXES)]
        mention = replace(mention, attributes=(*others, *said.items()))
    return mention


def _assertion(flags: set[str], section: str | None) -> Assertion:
    """Return the assertion that flags of axes mean."""
    held = flags - {""}
    held |= {IMPLIED[flag] for flag in held if flag in IMPLIED}
    return Assertion(**dict.fromkeys(held, True), status=status_of(held), section=section or "")  # type: ignore[arg-type]
