"""The elements of one kind out of a very large XML file, one at a time, each with its line.

The standard library's pull parser does the parsing. It tells no lines, so the file is fed to it
in pieces that end where an element of that kind ends, and the line breaks are counted.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast
from xml.etree import ElementTree

from biograft.errors import FormatError
from biograft.sources.files import open_bytes
from biograft.sources.limits import max_value, too_large
from biograft.sources.xml_guard import XmlGuard

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


def read_xml_records(
    path: Path, roots: Collection[str], tags: tuple[str, ...]
) -> Iterator[XmlRecord]:
    """Read every element of the given names below one of the roots; they must not be nested."""
    parser: ElementTree.XMLPullParser[ElementTree.Element] = ElementTree.XMLPullParser(
        ("start", "end")
    )
    size = max(path.stat().st_size, 1)
    opening = re.compile(rb"<(?:%s)[\s/>]" % "|".join(tags).encode())
    line = 1
    root: ElementTree.Element | None = None
    guard, most, done = XmlGuard(path), max_value(), 0
    with open_bytes(path) as file, _damage_told(path):
        for piece in _pieces(file, tags):
            guard.feed(piece)
            if guard.size - done > most:
                raise too_large(f"an element {' or '.join(tags)}", path, line)
            begun = opening.search(piece)
            start = line + piece.count(b"\n", 0, begun.start() if begun else 0)
            line += piece.count(b"\n")
            for event, element in _events(parser, piece):  # the inner loop, millions of times
                if event == "end" and element.tag in tags and root is not None:
                    yield XmlRecord(element, root, start, min(file.tell() / size, 1.0))
                    del root[:]
                    done = guard.size
                elif root is None:
                    root = element
                    _check_root(root.tag, path, roots)


def _events(
    parser: ElementTree.XMLPullParser[ElementTree.Element], piece: bytes
) -> Iterator[tuple[str, ElementTree.Element]]:
    """Parse a piece, little by little, since events take more room than the text."""
    for begin in range(0, len(piece), _CHUNK_BYTES):
        parser.feed(piece[begin : begin + _CHUNK_BYTES])
        yield from cast("Iterator[tuple[str, ElementTree.Element]]", parser.read_events())
    if not piece:
        parser.close()
        yield from cast("Iterator[tuple[str, ElementTree.Element]]", parser.read_events())


def _check_root(found: str, path: Path, roots: Collection[str]) -> None:
    if found not in roots:
        raise FormatError(
            f"the root element is {found}, expected {' or '.join(roots)}",
            path=path,
            remedy="name the right format",
        )


def _pieces(file: IO[bytes], tags: tuple[str, ...]) -> Iterator[bytes]:
    """Cut the file behind every closing tag of a record; the last piece alone is empty."""
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
    if rest:
        yield rest
    yield b""


@contextmanager
def _damage_told(path: Path) -> Iterator[None]:
    """Tell damage to the XML with its line."""
    try:
        yield
    except ElementTree.ParseError as error:
        raise FormatError(
            f"the XML is damaged or cut short ({error.msg})",
            path=path,
            line=error.position[0],
            remedy="fetch the file again",
        ) from error
    except (ValueError, LookupError) as error:
        raise FormatError(
            f"the XML declares an encoding that cannot be read ({error})",
            path=path,
            line=1,
            remedy="convert the file to UTF-8",
        ) from error
