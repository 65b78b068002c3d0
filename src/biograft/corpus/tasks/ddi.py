"""DDI 2013: drugs in sentences and which pairs interact, as XML; the published zip or a folder.

Every pair the files list is an example; its label is ``false`` or its type (advise, effect, int,
mechanism). The one pair said to interact without a type is taken for ``int``, an interaction of
which nothing more is said, and counted as doubtful.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from biograft.corpus.formats.ddi import recognise
from biograft.corpus.formats.fields import Placer
from biograft.corpus.tasks.records import RelationExample
from biograft.corpus.tasks.registry import TaskConfig, TaskFormat
from biograft.documents import Mention
from biograft.errors import ConfigError, FormatError
from biograft.sources.files import read_lines
from biograft.sources.xml_records import parse_file, xml_files

if TYPE_CHECKING:
    from biograft.sources.log import ReadLog

NO_RELATION = "false"
UNTYPED = "int"
_PIECE = re.compile(r"(\d{1,9})-(\d{1,9})")
_PLACES = {"train": "/Train/", "dev": "/Train/", "test": "/Test for DDI Extraction task/"}


def read(config: TaskConfig, log: ReadLog) -> Iterator[RelationExample]:
    """Read pairs file by file, in the order of the files' names.

    ``part`` picks files of the published layout; ``dev_list`` parts the documents of train and
    dev as BLURB does (without one, train is all of it, and there is no dev).
    """
    held_out = _documents_of(config.dev_list) if config.dev_list else frozenset()
    if config.part == "dev" and not held_out:
        raise ConfigError("part: dev needs a dev_list, which names the documents it takes")
    if held_out and not config.part:
        raise ConfigError("dev_list: parts train and dev; name one of them as the part")
    n_files = 0
    for path, data in xml_files(config.path):
        log.opened(config.path)
        if _PLACES.get(config.part, "") not in f"/{path.as_posix()}":
            continue
        n_files += 1
        root = _parse(path, data, log)
        if root is None:
            continue
        document = root.get("id", "")
        if config.part not in ("train", "dev") or (document in held_out) == (config.part == "dev"):
            yield from _pairs(root, path, data, log)
    if not n_files:
        raise FormatError(
            f"holds no XML file of DDI's {config.part}" if config.part else "holds no XML file",
            path=config.path,
            remedy="name the published zip, or a folder of XML files",
        )


def _documents_of(path: Path) -> frozenset[str]:
    """Read the documents whose pairs a list names: ``DDI-MedLine.d119.s1.p0``."""
    pairs = (line.split("\t")[0].strip() for _, line in read_lines(path))
    return frozenset(pair.rsplit(".", 2)[0] for pair in pairs if pair)


def _parse(path: Path, data: bytes, log: ReadLog) -> ElementTree.Element | None:
    try:
        root = parse_file(path, data)
    except FormatError as error:
        log.reject(error.problem, 1, path.name, path=path)
        return None
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        line = error.position[0] if isinstance(error, ElementTree.ParseError) else 1
        log.reject("the XML is damaged", line, str(error), path=path)
        return None
    if root.tag != "document":
        log.reject("the root element is not document", 1, root.tag, path=path)
        return None
    return root


def _pairs(
    root: ElementTree.Element, path: Path, data: bytes, log: ReadLog
) -> Iterator[RelationExample]:
    for sentence in root.iter("sentence"):
        text = sentence.get("text", "")
        placer = Placer(text, log, path)
        mentions = {
            entity.get("id", ""): _mention(entity, placer, data)
            for entity in sentence.iter("entity")
        }
        for pair in sentence.iter("pair"):
            log.read()
            name = pair.get("id", "")
            first, second = (mentions.get(pair.get(role, "")) for role in ("e1", "e2"))
            if first is None or second is None:
                reason = "a pair of mentions that are not in the sentence"
                log.reject(reason, _line(data, name), name, path=path)
            elif (label := _label(pair)) is None:
                log.reject("ddi is neither true nor false", _line(data, name), name, path=path)
            else:
                if label == UNTYPED and not pair.get("type"):
                    reason = f"an interaction without a type, taken for {UNTYPED}"
                    log.doubt(reason, _line(data, name), name, path=path)
                yield RelationExample(text, first, second, label, root.get("id", ""), name)


def _label(pair: ElementTree.Element) -> str | None:
    """Give the label of a pair; none if the file does not say whether it interacts."""
    match pair.get("ddi", "").strip().lower():
        case "false":
            return NO_RELATION
        case "true":
            return pair.get("type") or UNTYPED
        case _:
            return None


def _mention(entity: ElementTree.Element, placer: Placer, data: bytes) -> Mention | None:
    """Give the mention of an entity, whose ends are written inclusive; none if there is none.

    Offsets that are wrong are set right where the mention stands close by, as for documents.
    """
    name, offsets = entity.get("id", ""), entity.get("charOffset", "")
    found = [_PIECE.fullmatch(piece.strip()) for piece in offsets.split(";")]
    spans = tuple((int(piece[1]), int(piece[2]) + 1) for piece in found if piece)
    shown = f"{name} {offsets} {entity.get('text')}"
    if len(spans) < len(found):
        spans = ()
    mention = placer.mention(spans, entity.get("text"), _line(data, name), shown)
    return mention and replace(mention, type=entity.get("type", ""), id=name)


def _line(data: bytes, name: str) -> int:
    """Find the line of the element with an id."""
    place = data.find(f'id="{name}"'.encode()) if name else -1
    return data.count(b"\n", 0, place) + 1 if place >= 0 else 0


FORMAT = TaskFormat("relation", read, recognise, frozenset({"part", "dev_list"}))
