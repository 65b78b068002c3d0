"""DDI 2013 (drug-drug interactions) as relation examples: reader of the published zip or XML files.

Every pair that the files list is an example; its label is ``false`` or its type (advise, effect,
int, mechanism). The one pair that interacts without a type becomes ``int``, an unspecified
interaction, and is counted as doubtful.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from biograft.errors import ConfigError, FormatError
from biograft.kb.sources.files import read_lines
from biograft.kb.sources.xml_records import xml_files
from biograft.text.formats.ddi import find_line, parse_document, parse_mentions, recognise
from biograft.text.tasks.registry import RelationExample, TaskConfig, TaskFormat

if TYPE_CHECKING:
    from xml.etree import ElementTree

    from biograft.kb.sources.log import ReadLog

NO_RELATION = "false"
UNTYPED = "int"
_SPLIT_FOLDERS = {"train": "/Train/", "dev": "/Train/", "test": "/Test for DDI Extraction task/"}


def read(config: TaskConfig, log: ReadLog) -> Iterator[RelationExample]:
    """Read the pairs of all files, sorted by file name.

    ``split`` selects files of the published layout; ``dev_list`` separates the documents of train
    and dev as BLURB does (without it, train has all of them and there is no dev).
    """
    dev_documents = _documents_of(config.dev_list) if config.dev_list else frozenset()
    if config.split == "dev" and not dev_documents:
        raise ConfigError("split: dev needs a dev_list, which names its documents")
    if dev_documents and not config.split:
        raise ConfigError("dev_list: separates train and dev; name one of them as the split")
    n_files = 0
    for path, data in xml_files(config.path):
        log.opened(config.path)
        if _SPLIT_FOLDERS.get(config.split, "") not in f"/{path.as_posix()}":
            continue
        n_files += 1
        root = parse_document(path, data, log)
        if root is None:
            continue
        is_dev = root.get("id", "") in dev_documents
        if config.split not in ("train", "dev") or is_dev == (config.split == "dev"):
            yield from _pairs(root, path, data, log)
    if not n_files:
        raise FormatError(
            f"holds no XML file of DDI's {config.split}" if config.split else "holds no XML file",
            path=config.path,
            remedy="name the published zip, or a folder of XML files",
        )


def _documents_of(path: Path) -> frozenset[str]:
    """Read the documents of the pairs in a list: ``DDI-MedLine.d119.s1.p0``."""
    pairs = (line.split("\t")[0].strip() for _, line in read_lines(path))
    return frozenset(pair.rsplit(".", 2)[0] for pair in pairs if pair)


def _pairs(
    root: ElementTree.Element, path: Path, data: bytes, log: ReadLog
) -> Iterator[RelationExample]:
    for sentence in root.iter("sentence"):
        text = sentence.get("text", "")
        found = parse_mentions(sentence, data, log, path)
        mentions = {mention.id: mention for mention in found}
        for pair in sentence.iter("pair"):
            log.read()
            name = pair.get("id", "")
            first, second = (mentions.get(pair.get(role, "")) for role in ("e1", "e2"))
            if first is None or second is None:
                reason = "a pair of mentions that are not in the sentence"
                log.reject(reason, find_line(data, name), name, path=path)
            elif (label := _label(pair)) is None:
                log.reject("ddi is neither true nor false", find_line(data, name), name, path=path)
            else:
                if label == UNTYPED and not pair.get("type"):
                    reason = f"an interaction without a type, read as {UNTYPED}"
                    log.doubt(reason, find_line(data, name), name, path=path)
                yield RelationExample(text, first, second, label, root.get("id", ""), name)


def _label(pair: ElementTree.Element) -> str | None:
    """Return the label of a pair; None if ``ddi`` is neither true nor false."""
    match pair.get("ddi", "").strip().lower():
        case "false":
            return NO_RELATION
        case "true":
            return pair.get("type") or UNTYPED
        case _:
            return None


FORMAT = TaskFormat("relation", read, recognise, frozenset({"split", "dev_list"}))
