"""XML of one file, a folder of files or a zip; guards against such that would grow."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from biograft.errors import FormatError
from biograft.sources.files import open_bytes, open_zip, read_head, read_members
from biograft.sources.limits import max_value, too_large


def xml_files(path: Path) -> Iterator[tuple[Path, bytes]]:
    """Give the place and the bytes of each XML file, in the order of their names.

    Of one that is too large for one document only the beginning is given; ``parse_file`` says so.
    """
    size = max_value() + 1
    if path.is_dir():
        for each in sorted(path.rglob("*.xml")):
            with each.open("rb") as file:
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
    """Parse a file that is one document."""
    if len(data) > max_value():
        raise too_large("a file", path)
    refuse_entities(path, data)
    return ElementTree.fromstring(data)


def refuse_entities(path: Path, head: bytes | None = None) -> None:
    """Refuse a document that declares entities: a few lines of them can fill all memory.

    No corpus needs them. Those that stand farther in than what is looked at here are bounded as
    those of any XML (:mod:`biograft.sources.xml_guard`).
    """
    if b"<!ENTITY" in (read_head(path) if head is None else head):
        raise FormatError(
            "the XML declares entities, which are not read",
            path=path,
            remedy="write out what they stand for",
        )
