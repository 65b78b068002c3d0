"""XML input: records of large files, files of a folder or zip, and protection against XML bombs.

Some ontologies use entities as abbreviations (``<!ENTITY obo "http://...">``), so they are not
refused in general. Nested entities are refused, since they grow exponentially, and the expansion of
the others is bounded. Parsers differ in where they accept a declaration, so declarations are
searched everywhere.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast
from xml.etree import ElementTree

from biograft.errors import FormatError
from biograft.kb.sources.files import (
    ExpansionLimit,
    max_value,
    open_bytes,
    open_stored,
    open_zip,
    read_head,
    read_members,
    refuse_utf16,
    too_large,
)

MAX_ENTITY = 4096
"""Maximum bytes of the value of an entity."""
_MARK = b"<!ENTITY"
_OPENED = re.compile(rb"<!ENTITY\s+(?:%\s+)?([^\s\"'>]+)\s+([\"'])")
_NESTED = re.compile(rb"&(?!#|(?:lt|gt|amp|apos|quot);)")
_AMPERSAND = re.compile(rb"&#(?:0*38|x0*26);", re.IGNORECASE)
_REFERENCE = re.compile(rb"&([^\s;&<#]{1,256});")
_MAX_DECLARATION = MAX_ENTITY + 1024
"""Maximum bytes of a declaration, including its name."""
_MAX_MARK = 8
"""Maximum bytes of a mark that is searched."""


class XmlGuard:
    """Checks the bytes of one document, in order, before they are parsed."""

    def __init__(self, path: Path) -> None:
        self._path, self._max_bytes, self._expansion = path, max_value(), ExpansionLimit(path)
        self._lengths: dict[bytes, int] = {}
        self._seen = self._grown = 0
        self._declaring = self._before = b""
        self._run = 0
        """Bytes since the last markup began, with entities expanded."""
        self._aside: int | None = None
        """Bytes since a comment or CDATA section began, if in one."""

    @property
    def size(self) -> int:
        """The bytes so far, with entities expanded."""
        return self._seen + self._grown

    def feed(self, data: bytes) -> None:
        """Check the next bytes."""
        if not self._seen:
            refuse_utf16(data[:4], self._path)
            if b"\0" in data[:4]:
                raise FormatError("is no UTF-8", path=self._path, remedy="convert it to UTF-8")
        self._seen += len(data)
        self._declare(self._declaring + data)
        grown = 0
        if self._lengths:
            grown = sum(self._lengths.get(name, 0) for name in _REFERENCE.findall(data))
            self._grown += grown
            self._expansion.check(self._seen, self.size, "its entities are written out")
        self._measure(data, grown)

    def _declare(self, window: bytes) -> None:
        """Record the entities that are declared."""
        at = window.find(_MARK)
        while at >= 0:
            opened = _OPENED.match(window, at)
            end = window.find(opened[2], opened.end()) if opened else window.find(b">", at)
            if opened and end >= 0:
                name, value = opened[1], window[opened.end() : end]
                if len(value) > MAX_ENTITY:
                    raise self._refused(f"an entity of over {MAX_ENTITY} bytes")
                if _NESTED.search(_AMPERSAND.sub(b"&", value)):
                    raise self._refused("entities that stand for other entities")
                self._lengths[name] = max(len(value), self._lengths.get(name, 0))
            elif end < 0:
                if len(window) - at > _MAX_DECLARATION:
                    raise self._refused(f"an entity of over {MAX_ENTITY} bytes")
                self._declaring = window[at:]
                return
            at = window.find(_MARK, at + len(_MARK))
        self._declaring = window[1 - len(_MARK) :]

    def _refused(self, what: str) -> FormatError:
        return FormatError(
            f"the XML declares {what}, which are not read",
            path=self._path,
            remedy="expand them",
        )

    def _measure(self, data: bytes, grown: int) -> None:
        """Bound the size of a text, tag or comment, which parsers hold in memory."""
        window = self._before + data
        self._before = window[-_MAX_MARK:]
        last = data.rfind(b"<")
        self._run = (len(data) - last if last >= 0 else self._run + len(data)) + grown
        opened = max(window.rfind(b"<!--"), window.rfind(b"<![CDATA["))
        closed = max(window.rfind(b"-->"), window.rfind(b"]]>"))
        if opened > closed:
            inside = self._aside is not None and closed < 0
            self._aside = (self._aside or 0) + len(data) if inside else len(window) - opened
        elif closed >= 0:
            self._aside = None
        elif self._aside is not None:
            self._aside += len(data)
        if max(self._run, self._aside or 0) > self._max_bytes:
            raise too_large("a text, tag or comment", self._path)


_CHUNK_BYTES = 1 << 18
_MAX_CHUNK = 8 << 20
_ROOT = re.compile(r"<([A-Za-z_][\w.:-]*)")
_COMMENT = re.compile(r"<!--.*?(?:-->|$)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class XmlRecord:
    """An element, valid until the next is read, with its root and line."""

    element: ElementTree.Element
    root: ElementTree.Element
    line: int
    fraction: float
    """The fraction of the file that has been read."""


def root_name(text: str) -> str:
    """Return the name of the root element of a document; empty if there is none."""
    if not text.lstrip().startswith("<"):
        return ""
    match = _ROOT.search(_COMMENT.sub("", text))
    return match[1] if match else ""


def read_xml_records(
    path: Path, roots: Collection[str], tags: tuple[str, ...]
) -> Iterator[XmlRecord]:
    """Read all elements with the given tags below one of the roots; they must not be nested.

    Args:
        path: The file, also gzipped.
        roots: Names that the root may have.
        tags: Names of the elements.
    """
    parser: ElementTree.XMLPullParser[ElementTree.Element] = ElementTree.XMLPullParser(
        ("start", "end")
    )
    size = max(path.stat().st_size, 1)
    opening = re.compile(rb"<(?:%s)[\s/>]" % "|".join(tags).encode())
    line = 1
    root: ElementTree.Element | None = None
    guard, max_bytes, done = XmlGuard(path), max_value(), 0
    with open_bytes(path) as file, _report_damage(path):
        for chunk_bytes in _chunks(file, tags):
            guard.feed(chunk_bytes)
            if guard.size - done > max_bytes:
                raise too_large(f"an element {' or '.join(tags)}", path, line)
            opened = opening.search(chunk_bytes)
            start = line + chunk_bytes.count(b"\n", 0, opened.start() if opened else 0)
            line += chunk_bytes.count(b"\n")
            for event, element in _events(parser, chunk_bytes):  # the inner loop, millions of times
                if event == "end" and element.tag in tags and root is not None:
                    yield XmlRecord(element, root, start, min(file.tell() / size, 1.0))
                    del root[:]
                    done = guard.size
                elif root is None:
                    root = element
                    if root.tag not in roots:
                        raise FormatError(
                            f"the root element is {root.tag}, expected {' or '.join(roots)}",
                            path=path,
                            remedy="name the right format",
                        )


def _events(
    parser: ElementTree.XMLPullParser[ElementTree.Element], chunk_bytes: bytes
) -> Iterator[tuple[str, ElementTree.Element]]:
    """Parse a chunk in small steps, since events take more memory than the text."""
    for start in range(0, len(chunk_bytes), _CHUNK_BYTES):
        parser.feed(chunk_bytes[start : start + _CHUNK_BYTES])
        yield from cast("Iterator[tuple[str, ElementTree.Element]]", parser.read_events())
    if not chunk_bytes:
        parser.close()
        yield from cast("Iterator[tuple[str, ElementTree.Element]]", parser.read_events())


def _chunks(file: IO[bytes], tags: tuple[str, ...]) -> Iterator[bytes]:
    """Split the file after every closing tag of a record; only the last chunk is empty."""
    closing = re.compile(rb"</(?:%s)\s*>" % "|".join(tags).encode())
    rest = b""
    while chunk := file.read(_CHUNK_BYTES):
        # a closing tag may span two chunks, so search again a little before the seam
        searched = max(len(rest) - 256, 0)
        rest += chunk
        start = 0
        for match in closing.finditer(rest, searched):
            yield rest[start : match.end()]
            start = match.end()
        rest = rest[start:]
        if len(rest) > _MAX_CHUNK:
            yield rest
            rest = b""
    if rest:
        yield rest
    yield b""


@contextmanager
def _report_damage(path: Path) -> Iterator[None]:
    """Convert XML errors into a ``FormatError`` with the line."""
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


def xml_files(path: Path) -> Iterator[tuple[Path, bytes]]:
    """Yield the path and the bytes of each XML file of a folder or zip, sorted by name.

    A file above the size limit is truncated; ``parse_file`` then raises an error.
    """
    size = max_value() + 1
    if path.is_dir():
        for each in sorted(path.rglob("*.xml")):
            with open_stored(each) as file:
                yield each, file.read(size)
    elif zipfile.is_zipfile(path):
        with open_zip(path) as archive:
            names = sorted(n for n in archive.namelist() if n.endswith(".xml"))
            for name, data in read_members(archive, path, names, size):
                yield path / name, data
    else:
        with open_bytes(path) as file:
            yield path, file.read(size)


def parse_file(path: Path, data: bytes) -> ElementTree.Element:
    """Parse the bytes of a file that is one document.

    Args:
        path: The file, for errors.
        data: Its bytes.
    """
    if len(data) > max_value():
        raise too_large("a file", path)
    refuse_entities(path, data)
    XmlGuard(path).feed(data)
    return ElementTree.fromstring(data)


def refuse_entities(path: Path, head: bytes | None = None) -> None:
    """Refuse a document that declares entities near its start, which no corpus needs.

    Later declarations are checked by :class:`XmlGuard`.

    Args:
        path: The file.
        head: Its first bytes, if they are known.
    """
    if b"<!ENTITY" in (read_head(path) if head is None else head):
        raise FormatError(
            "the XML declares entities, which are not read",
            path=path,
            remedy="expand them",
        )
