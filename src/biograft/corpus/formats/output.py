"""What the writers of documents share: bytes of text, columns of ids, elements of XML."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from biograft.documents import Document
from biograft.errors import OutputError

XML_UNWRITABLE = "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
"""The characters that no XML document may hold."""


def encoded(text: str, document: Document) -> bytes:
    """Give text as UTF-8; half a surrogate pair is told with its document."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise OutputError(
            f"document {document.id!a}: holds half a surrogate pair, which no file can"
        ) from error


def joined(values: Iterable[str], document: Document, what: str) -> str:
    """Join ids or parts by ``|``; one that would not come apart again is refused."""
    values = tuple(values)
    for value in values:
        if "|" in value or value != value.strip() or value in ("", "-", "-1"):
            raise OutputError(
                f"document {document.id}: {what} {value!r}: holds a sign that parts several, "
                "begins or ends with a blank, or means none"
            )
    return "|".join(values)


def parted(cell: str) -> tuple[str, ...]:
    """Take apart what ``joined`` joined; ``-1`` and ``-`` mean none."""
    values = (value.strip() for value in cell.split("|"))
    return tuple(value for value in values if value not in ("", "-", "-1"))


def element(tag: str, text: str = "", **attributes: str) -> str:
    """Write an XML element that holds text only."""
    inside = escape(text, {"\r": "&#13;"})
    return f"<{opening(tag, attributes)}>{inside}</{tag}>"


def opening(tag: str, attributes: dict[str, str]) -> str:
    """Write the inside of an opening tag."""
    ends = {"\r": "&#13;", "\n": "&#10;", "\t": "&#9;"}
    return "".join([tag, *(f" {name}={quoteattr(v, ends)}" for name, v in attributes.items())])


_LONGEST_NAME = 200


def file_for(folder: Path, document: Document, ending: str) -> Path:
    """Name a file for a document, and make the folders its id names."""
    parts = document.id.split("/")
    odd = any(part in ("", ".", "..") or len(part.encode()) > _LONGEST_NAME for part in parts)
    if odd or any(sign in document.id for sign in "\0\\\n\r"):
        raise OutputError(f"document id {document.id!r}: no file can have that name")
    place = folder.joinpath(*parts[:-1], f"{parts[-1]}{ending}")
    place.parent.mkdir(parents=True, exist_ok=True)
    return place
