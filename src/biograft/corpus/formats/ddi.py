"""Documents as XML files of DDI 2013, and what these cannot hold."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

from biograft.artifacts import new_folder
from biograft.corpus.formats.brat import drop_dangling
from biograft.corpus.formats.fields import Placer
from biograft.corpus.formats.format import DocumentFormat, Feature, blank_out
from biograft.corpus.formats.output import XML_UNWRITABLE, encoded, file_for, opening
from biograft.documents import Document, Mention, Passage, Relation
from biograft.errors import FormatError
from biograft.sources.format import Probe
from biograft.sources.log import ReadLog
from biograft.sources.xml_records import parse_file, root_name, xml_files

_ROLES = ("e1", "e2")


def drop_wide(document: Document) -> tuple[Document, int]:
    """Leave out relations that do not join two mentions."""
    kept = tuple(r for r in document.relations if len(r.arguments) == len(_ROLES))
    return replace(document, relations=kept), len(document.relations) - len(kept)


def settle_roles(document: Document) -> tuple[Document, int]:
    """Name the two arguments of a relation as pairs do."""
    renamed = tuple(
        replace(r, arguments=tuple(
            (role, ref) for role, (_, ref) in zip(_ROLES, r.arguments, strict=True)
        ))
        for r in document.relations
    )  # fmt: skip
    n = sum(a != b for a, b in zip(renamed, document.relations, strict=True))
    return replace(document, relations=renamed), n


def settle_sentences(document: Document) -> tuple[Document, int]:
    """Keep the sentences of a document if all it says lies within them, else make it one.

    Mentions and relations are ordered by sentence.
    """
    sentences = [p for p in document.passages if p.kind == "sentence"]
    if not (_tile(sentences, document.text) and _hold_all(sentences, document)):
        end = len(document.text)
        sentences = [Passage(0, end, "sentence")] if end else []
    homes = _homes(sentences, document)
    mentions = sorted(document.mentions, key=lambda m: _home(m, sentences))
    relations = sorted(document.relations, key=lambda r: homes[r.arguments[0][1]])
    n = sum(passage not in sentences for passage in document.passages)
    return replace(
        document,
        mentions=tuple(mentions),
        relations=tuple(relations),
        passages=tuple(sentences),
    ), n


def _tile(sentences: Sequence[Passage], text: str) -> bool:
    """Whether a reader would put the text together again from its sentences."""
    end = 0
    for sentence in sentences:
        expected = end + (end > 0 and not text[end - 1].isspace())
        if sentence.start != expected or sentence.end <= sentence.start:
            return False
        if text[end:expected] not in ("", " "):
            return False
        end = sentence.end
    return end == len(text)


def _hold_all(sentences: Sequence[Passage], document: Document) -> bool:
    """Whether no mention and no relation reaches beyond its sentence."""
    bounds = [(s.start, s.end) for s in sentences]
    if not all(any(a <= m.start and m.end <= b for a, b in bounds) for m in document.mentions):
        return False
    homes = _homes(sentences, document)
    return all(len({homes[ref] for _, ref in r.arguments}) == 1 for r in document.relations)


def _homes(sentences: Sequence[Passage], document: Document) -> dict[str, int]:
    return {m.id: _home(m, sentences) for m in document.mentions}


def _home(mention: Mention, sentences: Sequence[Passage]) -> int:
    return sum(sentence.start <= mention.start for sentence in sentences) - 1


def settle_ids(document: Document) -> tuple[Document, int]:
    """Give mentions and pairs ids of their own where any lacks one."""
    n = 0
    ids = [mention.id for mention in document.mentions]
    if not all(ids) or len(set(ids)) < len(ids):
        n += sum(bool(each) for each in ids)
        renamed: dict[str, str] = {}
        for number, each in enumerate(ids):
            renamed.setdefault(each, f"{document.id}.e{number}")
        mentions = tuple(
            replace(m, id=f"{document.id}.e{number}") for number, m in enumerate(document.mentions)
        )
        relations = tuple(
            replace(r, arguments=tuple((role, renamed[ref]) for role, ref in r.arguments))
            for r in document.relations
        )
        document = replace(document, mentions=mentions, relations=relations)
    ids = [relation.id for relation in document.relations]
    if not all(ids) or len(set(ids)) < len(ids):
        n += sum(bool(each) for each in ids)
        numbered = enumerate(document.relations)
        relations = tuple(replace(r, id=f"{document.id}.p{number}") for number, r in numbered)
        document = replace(document, relations=relations)
    return document, n


def write(documents: Iterable[Document], path: Path, overwrite: bool = False) -> None:
    """Write a folder with a file for each document, named for its id."""
    with new_folder(path, overwrite=overwrite) as folder:
        for document in documents:
            lines = "".join(f"{line}\n" for line in _lines(document))
            file_for(folder, document, ".xml").write_bytes(encoded(lines, document))


def _lines(document: Document) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f"<{opening('document', {'id': document.id})}>"
    homes = _homes(document.passages, document)
    for number, sentence in enumerate(document.passages):
        identifier = f"{document.id}.s{number}"
        text = document.text[sentence.start : sentence.end]
        yield f"<{opening('sentence', {'id': identifier, 'text': text})}>"
        mentions = [m for m in document.mentions if homes[m.id] == number]
        for mention in mentions:
            yield f"<{opening('entity', _entity(mention, sentence.start))}/>"
        relations = [r for r in document.relations if homes[r.arguments[0][1]] == number]
        for pair in _pairs(mentions, relations, identifier):
            yield f"<{opening('pair', pair)}/>"
        yield "</sentence>"
    yield "</document>"


def _entity(mention: Mention, begin: int) -> dict[str, str]:
    places = ";".join(f"{start - begin}-{end - begin - 1}" for start, end in mention.spans)
    return {"id": mention.id, "charOffset": places, "type": mention.type, "text": mention.text}


def _pairs(
    mentions: Sequence[Mention], relations: Sequence[Relation], sentence: str
) -> Iterator[dict[str, str]]:
    """Give the pairs that interact, then all others of the sentence."""
    joined = set()
    for relation in relations:
        (_, first), (_, second) = relation.arguments
        joined.add(frozenset((first, second)))
        pair = {"id": relation.id, "e1": first, "e2": second, "ddi": "true"}
        yield {**pair, "type": relation.type} if relation.type else pair
    others = itertools.combinations((mention.id for mention in mentions), 2)
    free = (pair for pair in others if frozenset(pair) not in joined)
    for number, (first, second) in enumerate(free):
        yield {"id": f"{sentence}.n{number}", "e1": first, "e2": second, "ddi": "false"}


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
