"""Shared parts of document writers: UTF-8 text, joined ids, XML elements, file names."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from biograft.documents import Document
from biograft.errors import OutputError

XML_UNWRITABLE = "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
"""The characters that no XML document may hold."""
_MAX_NAME_BYTES = 200


def encode_text(text: str, document: Document) -> bytes:
    """Encode text as UTF-8; the error for half a surrogate pair names the document."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise OutputError(
            f"document {document.id!a}: holds half a surrogate pair, which no file can"
        ) from error


def join_ids(values: Iterable[str], document: Document, kind: str) -> str:
    """Join ids or parts by ``|``; one that could not be split again is refused."""
    values = tuple(values)
    for value in values:
        if "|" in value or value != value.strip() or value in ("", "-", "-1"):
            raise OutputError(
                f"document {document.id}: {kind} {value!r}: holds the separator `|`, begins or "
                "ends with whitespace, or means none"
            )
    return "|".join(values)


def split_ids(cell: str) -> tuple[str, ...]:
    """Split what ``join_ids`` joined; ``-1`` and ``-`` mean none."""
    values = (value.strip() for value in cell.split("|"))
    return tuple(value for value in values if value not in ("", "-", "-1"))


def xml_element(tag: str, text: str = "", **attributes: str) -> str:
    """Write an XML element that holds only text."""
    content = escape(text, {"\r": "&#13;"})
    return f"<{xml_tag(tag, attributes)}>{content}</{tag}>"


def xml_tag(tag: str, attributes: dict[str, str]) -> str:
    """Write the name and attributes of a start tag."""
    entities = {"\r": "&#13;", "\n": "&#10;", "\t": "&#9;"}
    return "".join([tag, *(f" {name}={quoteattr(v, entities)}" for name, v in attributes.items())])


def document_path(folder: Path, document: Document, suffix: str) -> Path:
    """Return the path of a document's file, and create the folders that its id names."""
    parts = document.id.split("/")
    invalid = any(part in ("", ".", "..") or len(part.encode()) > _MAX_NAME_BYTES for part in parts)
    if invalid or any(character in document.id for character in "\0\\\n\r"):
        raise OutputError(f"document id {document.id!r}: no file can have that name")
    path = folder.joinpath(*parts[:-1], f"{parts[-1]}{suffix}")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
