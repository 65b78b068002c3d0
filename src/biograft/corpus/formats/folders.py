"""Files of a folder that are named for documents."""

from __future__ import annotations

from pathlib import Path

from biograft.documents import Document
from biograft.errors import OutputError

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
