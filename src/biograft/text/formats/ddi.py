"""DDI 2013 corpus (drug-drug interactions) in XML: reader and writer."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

from biograft.artifacts import new_folder
from biograft.errors import EncodingError, FormatError
from biograft.kb.sources.format import Probe
from biograft.kb.sources.log import ReadLog
from biograft.kb.sources.xml_records import parse_file, root_name, xml_files
from biograft.text.documents import Document, Mention, Passage, Relation
from biograft.text.formats.format import (
    XML_UNWRITABLE,
    DocumentFormat,
    Feature,
    OffsetChecker,
    document_path,
    drop_dangling_relations,
    encode_text,
    number_mentions,
    rename_roles,
    replace_characters,
    xml_tag,
)

_ROLES = ("e1", "e2")
_SPAN = re.compile(r"(\d{1,15})-(\d{1,15})")


def recognise(probe: Probe) -> bool:
    """XML whose root is a document with sentences, or a folder or zip with XML files."""
    if probe.head:
        return root_name(probe.text) == "document" and "<sentence" in probe.text
    return any(name.endswith(".xml") for name in probe.members)


def read(path: Path, log: ReadLog) -> Iterator[Document]:
    """Read the documents sorted by file name; damaged files are rejected."""
    n_files = 0
    for file, data in xml_files(path):
        n_files += 1
        log.opened(path if file.parts[: len(path.parts)] == path.parts != file.parts else file)
        log.read()
        root = parse_document(file, data, log)
        if root is not None:
            yield _document(root, data, log, file)
    if not n_files:
        raise FormatError("holds no XML file", path=path, remedy="name the folder or the zip")


def parse_document(file: Path, data: bytes, log: ReadLog) -> ElementTree.Element | None:
    """Parse a file, whose root must be a document; None if it is rejected.

    Args:
        file: Its name.
        data: Its content.
        log: Says why it is rejected.
    """
    try:
        root = parse_file(file, data)
    except (FormatError, EncodingError) as error:
        log.reject(error.problem, 1, file.name, path=file)
        return None
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        line = error.position[0] if isinstance(error, ElementTree.ParseError) else 1
        log.reject("the XML is damaged", line, str(error), path=file)
        return None
    if root.tag == "document":
        return root
    log.reject("the root element is not document", 1, root.tag, path=file)
    return None


def find_line(data: bytes, identifier: str) -> int:
    """Return the line of the element with an id; 0 if there is none.

    Args:
        data: Bytes of the file.
        identifier: Id of the element.
    """
    position = data.find(f'id="{identifier}"'.encode()) if identifier else -1
    return data.count(b"\n", 0, position) + 1 if position >= 0 else 0


def parse_mentions(
    sentence: ElementTree.Element, data: bytes, log: ReadLog, path: Path
) -> list[Mention]:
    """Return the mentions of a sentence, whose ends are inclusive in the file.

    Wrong offsets are corrected if the text occurs nearby.

    Args:
        sentence: The element.
        data: The file, in which lines are counted.
        log: Gets what is corrected or rejected.
        path: The name of the file.
    """
    mentions = []
    checker = OffsetChecker(sentence.get("text", ""), log, path)
    for entity in sentence.iter("entity"):
        identifier, offsets = entity.get("id", ""), entity.get("charOffset", "")
        matches = [_SPAN.fullmatch(span.strip()) for span in offsets.split(";")]
        spans = tuple((int(m[1]), int(m[2]) + 1) for m in matches if m)
        line, excerpt = find_line(data, identifier), f"{identifier} {offsets} {entity.get('text')}"
        if len(spans) < len(matches):
            log.reject("offsets not of the form 0-4", line, excerpt, path=path)
            continue
        mention = checker.mention(spans, entity.get("text"), line, excerpt)
        if mention is not None:
            mentions.append(replace(mention, type=entity.get("type", ""), id=identifier))
    return mentions


def _document(root: ElementTree.Element, data: bytes, log: ReadLog, path: Path) -> Document:
    text, passages = "", []
    mentions: list[Mention] = []
    for sentence in root.iter("sentence"):
        own = sentence.get("text", "")
        if text and own and not text[-1].isspace():
            text += " "
        begin = len(text)
        text += own
        if own:
            passages.append(Passage(begin, len(text), "sentence"))
        found = parse_mentions(sentence, data, log, path)
        mentions += [_shifted(mention, begin) for mention in found]
    known = {mention.id for mention in mentions}
    relations = []
    for sentence in root.iter("sentence"):
        pairs, n = sentence.findall("pair"), len(sentence.findall("entity"))
        related = [pair for pair in pairs if pair.get("ddi") == "true"]
        if len(pairs) < n * (n - 1) // 2:
            log.filter("pair without interaction", len(pairs) - len(related))
        for pair in related:
            identifier = pair.get("id", "")
            arguments = tuple((role, pair.get(role, "")) for role in _ROLES)
            if known.issuperset(ref for _, ref in arguments):
                relations.append(Relation(pair.get("type", ""), arguments, identifier))
            else:
                line = find_line(data, identifier)
                log.reject("a pair of unknown entities", line, identifier, path=path)
    return Document(
        root.get("id", ""), text, tuple(mentions), "", tuple(relations), tuple(passages)
    )


def _shifted(mention: Mention, by: int) -> Mention:
    fragments = tuple((start + by, end + by) for start, end in mention.fragments)
    return replace(mention, start=mention.start + by, end=mention.end + by, fragments=fragments)


def write(documents: Iterable[Document], path: Path, overwrite: bool = False) -> None:
    """Write a folder with one file per document, named by its id.

    Args:
        documents: Documents.
        path: Folder to write.
        overwrite: Replace a folder that exists.
    """
    with new_folder(path, overwrite=overwrite) as folder:
        for document in documents:
            lines = "".join(f"{line}\n" for line in _lines(document))
            document_path(folder, document, ".xml").write_bytes(encode_text(lines, document))


def _lines(document: Document) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f"<{xml_tag('document', {'id': document.id})}>"
    indices = _sentence_indices(document.passages, document)
    for number, sentence in enumerate(document.passages):
        identifier = f"{document.id}.s{number}"
        text = document.text[sentence.start : sentence.end]
        yield f"<{xml_tag('sentence', {'id': identifier, 'text': text})}>"
        mentions = [m for m in document.mentions if indices[m.id] == number]
        for mention in mentions:
            yield f"<{xml_tag('entity', _entity(mention, sentence.start))}/>"
        relations = [r for r in document.relations if indices[r.arguments[0][1]] == number]
        for pair in _pairs(mentions, relations, identifier):
            yield f"<{xml_tag('pair', pair)}/>"
        yield "</sentence>"
    yield "</document>"


def _entity(mention: Mention, begin: int) -> dict[str, str]:
    offsets = ";".join(f"{start - begin}-{end - begin - 1}" for start, end in mention.spans)
    return {"id": mention.id, "charOffset": offsets, "type": mention.type, "text": mention.text}


def _pairs(
    mentions: Sequence[Mention], relations: Sequence[Relation], sentence: str
) -> Iterator[dict[str, str]]:
    """Yield the pairs that interact, then all other pairs of the sentence."""
    interacting = set()
    for relation in relations:
        (_, first), (_, second) = relation.arguments
        interacting.add(frozenset((first, second)))
        pair = {"id": relation.id, "e1": first, "e2": second, "ddi": "true"}
        yield {**pair, "type": relation.type} if relation.type else pair
    others = itertools.combinations((mention.id for mention in mentions), 2)
    negative = (pair for pair in others if frozenset(pair) not in interacting)
    for number, (first, second) in enumerate(negative):
        yield {"id": f"{sentence}.n{number}", "e1": first, "e2": second, "ddi": "false"}


def keep_binary_relations(document: Document) -> tuple[Document, int]:
    """Drop relations that do not have two arguments."""
    relations = tuple(r for r in document.relations if len(r.arguments) == len(_ROLES))
    return replace(document, relations=relations), len(document.relations) - len(relations)


def keep_sentences(document: Document) -> tuple[Document, int]:
    """Keep the sentences if no mention or relation crosses them, else make the text one.

    Mentions and relations are sorted by sentence.
    """
    sentences = [p for p in document.passages if p.kind == "sentence"]
    if not (_covers_text(sentences, document.text) and _contain_all(sentences, document)):
        end = len(document.text)
        sentences = [Passage(0, end, "sentence")] if end else []
    indices = _sentence_indices(sentences, document)
    mentions = sorted(document.mentions, key=lambda m: _sentence_index(m, sentences))
    relations = sorted(document.relations, key=lambda r: indices[r.arguments[0][1]])
    n = sum(passage not in sentences for passage in document.passages)
    return replace(
        document,
        mentions=tuple(mentions),
        relations=tuple(relations),
        passages=tuple(sentences),
    ), n


def _covers_text(sentences: Sequence[Passage], text: str) -> bool:
    """Whether the text can be restored from its sentences."""
    end = 0
    for sentence in sentences:
        expected = end + (end > 0 and not text[end - 1].isspace())
        if sentence.start != expected or sentence.end <= sentence.start:
            return False
        if text[end:expected] not in ("", " "):
            return False
        end = sentence.end
    return end == len(text)


def _contain_all(sentences: Sequence[Passage], document: Document) -> bool:
    """Whether no mention or relation crosses the bounds of a sentence."""
    bounds = [(s.start, s.end) for s in sentences]
    if not all(any(a <= m.start and m.end <= b for a, b in bounds) for m in document.mentions):
        return False
    indices = _sentence_indices(sentences, document)
    return all(len({indices[ref] for _, ref in r.arguments}) == 1 for r in document.relations)


def _sentence_indices(sentences: Sequence[Passage], document: Document) -> dict[str, int]:
    return {m.id: _sentence_index(m, sentences) for m in document.mentions}


def _sentence_index(mention: Mention, sentences: Sequence[Passage]) -> int:
    return sum(sentence.start <= mention.start for sentence in sentences) - 1


def assign_ids(document: Document) -> tuple[Document, int]:
    """Assign unique ids to mentions and pairs if any lacks one."""
    n = 0
    ids = [mention.id for mention in document.mentions]
    if not all(ids) or len(set(ids)) < len(ids):
        document, n = number_mentions(document, f"{document.id}.e", 0)
    ids = [relation.id for relation in document.relations]
    if not all(ids) or len(set(ids)) < len(ids):
        n += sum(bool(each) for each in ids)
        numbered = enumerate(document.relations)
        relations = tuple(replace(r, id=f"{document.id}.p{number}") for number, r in numbered)
        document = replace(document, relations=relations)
    return document, n


FORMAT = DocumentFormat(
    recognise=recognise,
    read=read,
    write=write,
    holds=frozenset(
        {
            Feature.DOCUMENT_IDS,
            Feature.PASSAGES,
            Feature.GAPS,
            Feature.NESTING,
            Feature.TYPES,
            Feature.MENTION_IDS,
            Feature.MENTION_RELATIONS,
            Feature.RELATION_IDS,
        }
    ),
    steps=(
        ("control characters", replace_characters(XML_UNWRITABLE)),
        (str(Feature.MENTION_RELATIONS), drop_dangling_relations),
        (str(Feature.MENTION_RELATIONS), keep_binary_relations),
        ("roles of relations", rename_roles(lambda relation: _ROLES)),
        (str(Feature.PASSAGES), keep_sentences),
        ("mention and relation ids", assign_ids),
    ),
    unique_ids=True,
)
