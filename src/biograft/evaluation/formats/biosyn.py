"""BioSyn's processed corpora: ``doc||start|end||type||mention||id`` a line, a file a document.

Given as a folder of ``*.concept`` (or ``*.txt``) files, one such file, or a folder inside a tar
archive: ``concept_files.tar.gz::processed_test``. Composite mentions and their ids are joined by
``|`` or ``+``; ``CUI-less`` marks a mention without concept. There is no text.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from biograft.errors import InputError
from biograft.evaluation.queries import GoldConfig, LinkQuery, gold_ids
from biograft.metrics.linking import benchmark_parts
from biograft.sources.files import decode, is_empty, open_tar, read_lines
from biograft.sources.limits import EXPANSION, max_expansion, max_value, raise_limit, too_large
from biograft.sources.log import ReadLog

SUFFIXES = (".concept", ".txt")
IN_TAR = "::"
NumberedLines = Iterator[tuple[Path, int, str]]


def read(path: str, config: GoldConfig, log: ReadLog) -> Iterator[LinkQuery]:
    """Read queries file by file, in the order of the files' names."""
    for file, number, line in _lines(path):
        if not line.strip():
            continue
        log.read()
        cells = line.split("||")
        if len(cells) < 5 or not cells[3].strip():
            log.reject("not of the form doc||start|end||type||mention||id", number, line, path=file)
            continue
        # a mention may hold the separator itself; the first three and the last cell may not
        yield _query(cells, "||".join(cells[3:-1]), config)


def _query(cells: list[str], mention: str, config: GoldConfig) -> LinkQuery:
    document, span, kind, cell = cells[0].strip(), cells[1], cells[2].strip(), cells[-1]
    start, _, end = span.partition("|")
    split = config.split_composites
    ids = gold_ids(benchmark_parts(cell) if split else cell.split("|"))
    return LinkQuery(
        mention,
        frozenset(ids),
        parts=benchmark_parts(mention) if split else (mention,),
        needed=tuple(frozenset({i}) for i in ids),
        document=document,
        start=int(start) if start.isdecimal() else None,
        end=int(end) if end.isdecimal() else None,
        type=kind,
    )


def _lines(path: str) -> NumberedLines:
    archive, marked, folder = path.partition(IN_TAR)
    if marked:
        yield from _lines_of_tar(Path(archive), folder.strip("/"))
        return
    place = Path(path)
    files = [place]
    if place.is_dir():
        files = sorted(file for file in place.iterdir() if file.suffix in SUFFIXES)
        if not files:
            raise InputError("has no *.concept file", path=place, remedy="name the folder of them")
    for file in files:
        if place.is_dir() and is_empty(file):  # a document without mentions
            continue
        for number, line in read_lines(file):
            yield file, number, line


def _lines_of_tar(archive: Path, folder: str) -> NumberedLines:
    if not archive.is_file():
        raise InputError("does not exist", path=archive, remedy="check the path")
    with open_tar(archive) as tar:
        contents, folders = _contents(tar, folder, archive)
    if not contents:
        raise InputError(
            f"has no *.concept file in the folder {folder!r}",
            path=archive,
            remedy=f"its folders: {', '.join(sorted(folders))}",
        )
    for name in sorted(contents):
        place = Path(f"{archive}{IN_TAR}{name}")
        for number, line in enumerate(decode(contents[name], place, 1, "utf-8").splitlines(), 1):
            yield place, number, line


def _contents(
    tar: tarfile.TarFile, folder: str, archive: Path
) -> tuple[dict[str, bytes], set[str]]:
    """Read the wanted files in one pass, and say which folders there are."""
    contents, folders, left = {}, set(), max_expansion()
    for member in tar:
        name = PurePosixPath(member.name.removeprefix("./"))
        if not member.isfile() or name.suffix not in SUFFIXES:
            continue
        folders.add(str(name.parent))
        if str(name.parent) == (folder or "."):
            left -= member.size
            if member.size > max_value():
                raise too_large(f"{name} is a file", archive)
            if left < 0:
                raise InputError(
                    f"has files of over {max_expansion() >> 20} MiB in the folder {folder!r}",
                    path=archive,
                    remedy=raise_limit(EXPANSION),
                )
            file = tar.extractfile(member)
            contents[str(name)] = file.read() if file else b""
    return contents, folders
