"""brat: a folder of texts (``.txt``) with their annotations beside them (``.ann``).

    T1<TAB>Disease 0 5;16 23<TAB>heart failure
    R1<TAB>Treats Arg1:T2 Arg2:T1
    N1<TAB>Reference T1 MESH:D006333<TAB>Heart Failure

An event ``E`` is a relation whose first argument, its trigger, has the role "Trigger". Concepts
are references; one without the name of its resource is written with the resource ``id``.
Attributes, notes and events about events are counted as filtered.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from biograft.corpus.formats.brat_lines import AnnReading
from biograft.corpus.formats.brat_output import (
    drop_dangling,
    lines_of,
    settle_mention_ids,
    settle_names,
    settle_relation_ids,
)
from biograft.corpus.formats.features import EVERYTHING, DocumentFormat, Feature
from biograft.corpus.formats.fitting import blank_out
from biograft.corpus.formats.folders import file_for
from biograft.corpus.formats.text_output import encoded
from biograft.documents import Document
from biograft.errors import InputError
from biograft.runs import new_folder
from biograft.sources.files import is_empty, open_bytes, read_lines
from biograft.sources.format import Probe
from biograft.sources.log import ReadLog


def recognise(probe: Probe) -> bool:
    """A folder with files that end in ``.ann``."""
    return probe.path.is_dir() and any(name.endswith((".ann", ".ann.gz")) for name in probe.members)


def read(path: Path, log: ReadLog) -> Iterator[Document]:
    """Read the texts below a folder in the order of their names; these are the ids."""
    if not path.is_dir():
        raise InputError("is a file, brat has folders", path=path, remedy="name the folder")
    found = (each for each in path.rglob("*") if each.name.endswith((".txt", ".txt.gz")))
    texts = {each.relative_to(path).as_posix().removesuffix(".gz")[:-4]: each for each in found}
    if not texts:
        raise InputError("holds no .txt file", path=path, remedy="name a folder of brat")
    for identifier, text_path in sorted(texts.items()):
        log.opened(text_path)
        text = _text(text_path)
        if text is None:
            log.reject("not UTF-8", 1, identifier, path=text_path)
            continue
        yield _annotated(Document(identifier, text), text_path, log)


def _text(path: Path) -> str | None:
    """Read a text with all its characters as they are."""
    if is_empty(path):
        return ""
    with open_bytes(path) as file, contextlib.suppress(UnicodeDecodeError):
        return file.read().decode()
    return None


def _annotated(document: Document, text_path: Path, log: ReadLog) -> Document:
    """Add the annotations of the files beside a text."""
    stem = text_path.name.removesuffix(".gz").removesuffix(".txt")
    for name in (f"{stem}.ann", f"{stem}.ann.gz"):
        path = text_path.with_name(name)
        if path.exists():
            break
    else:
        log.doubt("no annotations beside the text", 0, document.id, path=text_path)
        return document
    reading = AnnReading(document.text, log, path)
    for number, line in read_lines(path) if not is_empty(path) else ():
        if line.strip():
            log.read()
            reading.add(line, number)
    return reading.finish(document)


def write(documents: Iterable[Document], path: Path, overwrite: bool = False) -> None:
    """Write a folder with two files for each document, named for its id."""
    with new_folder(path, overwrite=overwrite) as folder:
        for document in documents:
            text = encoded(document.text, document)
            lines = "".join(f"{line}\n" for line in lines_of(document))
            file_for(folder, document, ".txt").write_bytes(text)
            file_for(folder, document, ".ann").write_bytes(encoded(lines, document))


FORMAT = DocumentFormat(
    recognise=recognise,
    read=read,
    write=write,
    holds=EVERYTHING
    - {Feature.LANGUAGE, Feature.PASSAGES, Feature.PARTS, Feature.CONCEPT_RELATIONS},
    steps=(
        ("control characters", blank_out("\0")),
        (str(Feature.MENTION_RELATIONS), drop_dangling),
        (str(Feature.MENTION_IDS), settle_mention_ids),
        (str(Feature.RELATION_IDS), settle_relation_ids),
        ("names of types and roles", settle_names),
    ),
    unique_ids=True,
)
