"""Guards against XML that would grow while it is read."""

from __future__ import annotations

from pathlib import Path

from biograft.errors import FormatError
from biograft.sources.files import read_head


def refuse_entities(path: Path, head: bytes | None = None) -> None:
    """Refuse a document that declares entities: a few lines of them can fill all memory.

    No corpus needs them. Those that stand farther in than what is looked at here are left to
    the parser, which stops when entities make the text more than a hundred times as long.
    """
    if b"<!ENTITY" in (read_head(path) if head is None else head):
        raise FormatError(
            "the XML declares entities, which are not read",
            path=path,
            remedy="write out what they stand for",
        )
