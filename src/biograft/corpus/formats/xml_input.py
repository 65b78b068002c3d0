"""XML of one file, a folder of files or a zip; guards against such that would grow."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

from biograft.errors import FormatError
from biograft.sources.files import open_bytes, open_zip, read_head


def xml_files(path: Path, most: int = -1) -> Iterator[tuple[Path, bytes]]:
    """Give the place and the bytes of each XML file, in the order of their names.

    Of a file of more than ``most`` bytes only the beginning is given, one byte more than these.
    """
    size = most + 1 if most >= 0 else -1
    if path.is_dir():
        for each in sorted(path.rglob("*.xml")):
            with each.open("rb") as file:
                yield each, file.read(size)
    elif zipfile.is_zipfile(path):
        with open_zip(path) as archive:
            for name in sorted(n for n in archive.namelist() if n.endswith(".xml")):
                with archive.open(name) as member:
                    yield path / name, member.read(size)
    else:
        with open_bytes(path) as file:
            yield path, file.read(size)


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
