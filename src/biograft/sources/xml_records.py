"""The elements of one kind out of a very large XML file, one at a time, each with its line.

The standard library's pull parser does the parsing. It tells no lines, so the file is fed to it
in pieces that end where an element of that kind ends, and the line breaks are counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from xml.etree import ElementTree

from biograft.errors import FormatError
from biograft.sources.files import open_bytes

_CHUNK_BYTES = 1 << 18
_MAX_PIECE_BYTES = 8 << 20
_ROOT = re.compile(r"<([A-Za-z_][\w.:-]*)")
_COMMENT = re.compile(r"<!--.*?(?:-->|$)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class XmlRecord:
    """One element, valid until the next is asked for, and what is known of its place."""

    element: ElementTree.Element
    root: ElementTree.Element
    line: int
    fraction: float
    """How much of the file has been read."""


def root_name(text: str) -> str:
    """Name the root element of a document by its beginning; empty if there is none."""
    if not text.lstrip().startswith("<"):
        return ""
    match = _ROOT.search(_COMMENT.sub("", text))
    return match[1] if match else ""


def read_xml_records(path: Path, tags: tuple[str, ...]) -> Iterator[XmlRecord]:
    """Read every element of the given names below the root, which must not be nested."""
    parser = ElementTree.XMLPullParser(("start", "end"))
    size = max(path.stat().st_size, 1)
    opening = re.compile(rb"<(?:%s)[\s/>]" % "|".join(tags).encode())
    line, root = 1, None
    with open_bytes(path) as file:
        for piece in _pieces(file, tags):
            begun = opening.search(piece)
            start = line + piece.count(b"\n", 0, begun.start() if begun else 0)
            line += piece.count(b"\n")
            for event, element in _events(parser, piece, path):
                if root is None:
                    root = element
                elif event == "end" and element.tag in tags:
                    yield XmlRecord(element, root, start, min(file.tell() / size, 1.0))
                    root.clear()
    for _ in _events(parser, b"", path, last=True):
        pass


def _pieces(file: IO[bytes], tags: tuple[str, ...]) -> Iterator[bytes]:
    """Cut the file behind every closing tag of a record."""
    closing = re.compile(rb"</(?:%s)\s*>" % "|".join(tags).encode())
    rest = b""
    while chunk := file.read(_CHUNK_BYTES):
        # a closing tag may lie across the seam, so look again a little before it
        searched = max(len(rest) - 256, 0)
        rest += chunk
        begin = 0
        for match in closing.finditer(rest, searched):
            yield rest[begin : match.end()]
            begin = match.end()
        rest = rest[begin:]
        if len(rest) > _MAX_PIECE_BYTES:
            yield rest
            rest = b""
    yield rest


def _events(
    parser: ElementTree.XMLPullParser[ElementTree.Element],
    data: bytes,
    path: Path,
    last: bool = False,
) -> Iterator[tuple[str, ElementTree.Element]]:
    """Feed a piece and give its events; damage is told with its line."""
    try:
        parser.feed(data)
        if last:
            parser.close()
        for event, element in parser.read_events():
            if isinstance(element, ElementTree.Element):
                yield event, element
    except ElementTree.ParseError as error:
        line, _ = error.position
        raise FormatError(
            f"the XML is damaged or cut short ({error.msg})",
            path=path,
            line=line,
            remedy="fetch the file again",
        ) from error
    except (ValueError, LookupError) as error:
        raise FormatError(
            f"the XML declares an encoding that cannot be read ({error})",
            path=path,
            line=1,
            remedy="convert the file to UTF-8",
        ) from error
