"""DDI 2013: a document an XML file, with sentences, drugs and pairs of drugs that interact.

    <document id="d1"><sentence id="d1.s0" text="Iron binds tea.">
      <entity id="d1.s0.e0" charOffset="0-3" type="drug" text="Iron"/>
      <pair id="d1.s0.p0" e1="d1.s0.e0" e2="d1.s0.e1" ddi="true" type="effect"/>

``charOffset`` counts within the sentence, its end inclusive; pieces are parted by ``;``. The
text of a document is its sentences, parted by a blank where they bring none. A pair with
``ddi="false"`` is no relation; such pairs are written again for all mentions of a sentence that
no relation joins, which is what the corpus has. In a sentence with fewer they are counted as
filtered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

from biograft.corpus.formats.brat_output import drop_dangling
from biograft.corpus.formats.ddi_output import (
    drop_wide,
    settle_ids,
    settle_roles,
    settle_sentences,
    write,
)
from biograft.corpus.formats.features import DocumentFormat, Feature
from biograft.corpus.formats.fitting import blank_out
from biograft.corpus.formats.placing import Placer
from biograft.corpus.formats.text_output import XML_UNWRITABLE
from biograft.corpus.formats.xml_input import parse_file, xml_files
from biograft.documents import Document, Mention, Passage, Relation
from biograft.errors import FormatError
from biograft.sources.format import Probe
from biograft.sources.log import ReadLog
from biograft.sources.xml_records import root_name

_SPAN = re.compile(r"(\d+)-(\d+)")


def recognise(probe: Probe) -> bool:
    """XML whose root is a document with sentences, or a folder or zip with XML files."""
    if probe.head:
        return root_name(probe.text) == "document" and "<sentence" in probe.text
    return any(name.endswith(".xml") for name in probe.members)


def read(path: Path, log: ReadLog) -> Iterator[Document]:
    """Read the documents in the order of the names of their files; a damaged one is rejected."""
    n_files = 0
    for place, data in xml_files(path):
        n_files += 1
        log.opened(path if place.parts[: len(path.parts)] == path.parts != place.parts else place)
        log.read()
        try:
            root = parse_file(place, data)
        except FormatError as error:
            log.reject(error.problem, 0, place.name, path=place)
        except (ElementTree.ParseError, ValueError, LookupError) as error:
            line = error.position[0] if isinstance(error, ElementTree.ParseError) else 1
            log.reject("the XML is damaged", line, str(error), path=place)
        else:
            if root.tag == "document":
                yield _Reading(root, data, log, place).document()
            else:
                log.reject("the root element is no document", 1, root.tag, path=place)
    if not n_files:
        raise FormatError("holds no XML file", path=path, remedy="name the folder or the zip")


class _Reading:
    """One document as far as it has been read."""

    def __init__(self, root: ElementTree.Element, data: bytes, log: ReadLog, path: Path) -> None:
        self._root, self._data = root, data
        self._log, self._path = log, path
        self._mentions: list[Mention] = []
        self._relations: list[Relation] = []

    def document(self) -> Document:
        text, passages = "", []
        for sentence in self._root.iter("sentence"):
            own = sentence.get("text", "")
            if text and own and not text[-1].isspace():
                text += " "
            begin = len(text)
            text += own
            if own:
                passages.append(Passage(begin, len(text), "sentence"))
            self._add_entities(sentence, own, begin)
        known = {mention.id for mention in self._mentions}
        for sentence in self._root.iter("sentence"):
            pairs, n = sentence.findall("pair"), len(sentence.findall("entity"))
            if len(pairs) < n * (n - 1) // 2:
                without = sum(pair.get("ddi") != "true" for pair in pairs)
                self._log.filter("pair without interaction", without)
            for pair in pairs:
                self._add_pair(pair, known)
        return Document(
            self._root.get("id", ""), text, tuple(self._mentions), "",
            tuple(self._relations), tuple(passages),
        )  # fmt: skip

    def _add_entities(self, sentence: ElementTree.Element, text: str, begin: int) -> None:
        placer = Placer(text, self._log, self._path)
        for entity in sentence.iter("entity"):
            identifier, offsets = entity.get("id", ""), entity.get("charOffset", "")
            matches = [_SPAN.fullmatch(piece) for piece in offsets.split(";")]
            spans = tuple((int(m[1]), int(m[2]) + 1) for m in matches if m)
            line, shown = self._line(identifier), f"{identifier} {offsets} {entity.get('text')}"
            if len(spans) < len(matches):
                self._log.reject("offsets of no such form", line, shown, path=self._path)
                continue
            mention = placer.mention(spans, entity.get("text"), line, shown)
            if mention is not None:
                kind = entity.get("type", "")
                self._mentions.append(replace(_later(mention, begin), type=kind, id=identifier))

    def _add_pair(self, pair: ElementTree.Element, known: set[str]) -> None:
        if pair.get("ddi") != "true":
            return
        identifier = pair.get("id", "")
        arguments = ("e1", pair.get("e1", "")), ("e2", pair.get("e2", ""))
        if any(ref not in known for _, ref in arguments):
            line = self._line(identifier)
            self._log.reject("a pair of what is not there", line, identifier, path=self._path)
            return
        self._relations.append(Relation(pair.get("type", ""), arguments, identifier))

    def _line(self, identifier: str) -> int:
        place = self._data.find(f'"{identifier}"'.encode())
        return self._data.count(b"\n", 0, max(place, 0)) + 1


def _later(mention: Mention, by: int) -> Mention:
    pieces = tuple((start + by, end + by) for start, end in mention.pieces)
    return replace(mention, start=mention.start + by, end=mention.end + by, pieces=pieces)


FORMAT = DocumentFormat(
    recognise=recognise,
    read=read,
    write=write,
    holds=frozenset(
        {
            Feature.DOCUMENT_IDS, Feature.PASSAGES, Feature.GAPS, Feature.NESTING, Feature.TYPES,
            Feature.MENTION_IDS, Feature.MENTION_RELATIONS, Feature.RELATION_IDS,
        }
    ),
    steps=(
        ("control characters", blank_out(XML_UNWRITABLE)),
        (str(Feature.MENTION_RELATIONS), drop_dangling),
        (str(Feature.MENTION_RELATIONS), drop_wide),
        ("roles of relations", settle_roles),
        (str(Feature.PASSAGES), settle_sentences),
        ("mention and relation ids", settle_ids),
    ),
    unique_ids=True,
)  # fmt: skip
