"""brat standoff (``.txt`` and ``.ann`` files): reader and writer."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from biograft.artifacts import new_folder
from biograft.errors import InputError, OutputError
from biograft.kb.sources.files import is_empty, open_bytes, read_lines
from biograft.kb.sources.format import Probe
from biograft.kb.sources.log import ReadLog
from biograft.text.documents import Document, Mention, Relation
from biograft.text.formats.format import (
    ALL_FEATURES,
    DocumentFormat,
    Feature,
    OffsetChecker,
    document_path,
    drop_dangling_relations,
    encode_text,
    number_mentions,
    replace_characters,
)

TRIGGER = "Trigger"
RESOURCE = "id"
"""The resource of a concept whose id names none."""
_SPAN = re.compile(r"(\d{1,15}) (\d{1,15})")
_NOTE = "#"
_MENTION_ID = re.compile(r"T\d+")
_LABEL_SEPARATORS = re.compile(r"[\s:;]+")
_NAMED_RESOURCE = re.compile(r"[^\s:]+:\S+")


def recognise(probe: Probe) -> bool:
    """A folder with files that end in ``.ann``."""
    return probe.path.is_dir() and any(name.endswith((".ann", ".ann.gz")) for name in probe.members)


def read(path: Path, log: ReadLog) -> Iterator[Document]:
    """Read the documents of a folder, sorted by path; the path without suffix is the id.

    Args:
        path: Folder of ``.txt`` and ``.ann`` files.
        log: Counts documents read, and what is doubtful or rejected.
    """
    if not path.is_dir():
        raise InputError("is a file, brat has folders", path=path, remedy="name the folder")
    files = (
        each
        for each in path.rglob("*")
        if each.name.endswith((".txt", ".txt.gz"))
        and not any(part.startswith(".") for part in each.relative_to(path).parts)
    )
    texts = {each.relative_to(path).as_posix().removesuffix(".gz")[:-4]: each for each in files}
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
    """Read a text unaltered; None if it is not UTF-8."""
    if is_empty(path):
        return ""
    with open_bytes(path) as file, contextlib.suppress(UnicodeDecodeError):
        return file.read().decode()
    return None


def _annotated(document: Document, text_path: Path, log: ReadLog) -> Document:
    """Add the annotations of the ``.ann`` file beside a text."""
    stem = text_path.name.removesuffix(".gz").removesuffix(".txt")
    for name in (f"{stem}.ann", f"{stem}.ann.gz"):
        path = text_path.with_name(name)
        if path.exists():
            break
    else:
        log.doubt("no annotations beside the text", 0, document.id, path=text_path)
        return document
    parser = AnnParser(document.text, log, path)
    for number, line in read_lines(path) if not is_empty(path) else ():
        if line.strip():
            log.read()
            parser.add(line, number)
    return parser.finish(document)


class AnnParser:
    """Parses the lines of one ``.ann`` file.

    Args:
        text: Text of the document.
        log: Counts what is doubtful or rejected.
        path: The ``.ann`` file.
    """

    def __init__(self, text: str, log: ReadLog, path: Path) -> None:
        self._log, self._path = log, path
        self._placer = OffsetChecker(text, log, path)
        self._mentions: dict[str, Mention] = {}
        self._relations: list[tuple[Relation, int, str]] = []
        self._references: list[tuple[str, str, int, str]] = []
        self._attributes: list[tuple[str, str, str]] = []

    def add(self, line: str, number: int) -> None:
        """Parse a line; references may come before what they refer to.

        Args:
            line: The line.
            number: Its number.
        """
        identifier, _, rest = line.partition("\t")
        reader = {
            "T": self._add_mention,
            "R": self._add_relation,
            "E": self._add_relation,
            "*": self._add_relation,
            "N": self._add_reference,
            "A": self._add_attribute,
            "M": self._add_attribute,
        }.get(identifier[:1])
        if identifier[:1] == _NOTE:
            self._log.filter("note")
        elif reader is None or not reader(identifier, rest, number, line):
            self._log.reject("is no line of a brat file", number, line, path=self._path)

    def _add_mention(self, identifier: str, rest: str, number: int, line: str) -> bool:
        head, _, text = rest.partition("\t")
        kind, _, offsets = head.partition(" ")
        matches = [_SPAN.fullmatch(span) for span in offsets.split(";")]
        spans = tuple((int(m[1]), int(m[2])) for m in matches if m)
        if not kind or len(spans) < len(matches) or identifier in self._mentions:
            return False
        mention = self._placer.mention(spans, text, number, line)
        if mention is not None:
            self._mentions[identifier] = replace(mention, type=kind, id=identifier)
        return True

    def _add_relation(self, identifier: str, rest: str, number: int, line: str) -> bool:
        kind, *words = rest.split() or [""]
        if identifier.startswith("E"):
            kind, _, trigger = kind.partition(":")
            words = [f"{TRIGGER}:{trigger}", *words]
        if identifier == "*":
            identifier, words = "", [f":{word}" for word in words]
        pairs = [word.partition(":") for word in words]
        if not kind or not pairs or not all(colon and ref for _, colon, ref in pairs):
            return False
        arguments = tuple((role, ref) for role, _, ref in pairs)
        self._relations.append((Relation(kind, arguments, identifier), number, line))
        return True

    def _add_reference(self, identifier: str, rest: str, number: int, line: str) -> bool:
        words = rest.partition("\t")[0].split()
        if len(words) != 3:
            return False
        self._references.append((words[1], words[2], number, line))
        return True

    def _add_attribute(self, identifier: str, rest: str, number: int, line: str) -> bool:
        name, _, target = rest.partition(" ")
        target, _, value = target.partition(" ")
        self._attributes.append((target.strip(), name, value.strip()))
        return bool(name and target)

    def finish(self, document: Document) -> Document:
        """Return the document with its annotations."""
        for target, concept, number, line in self._references:
            mention = self._mentions.get(target)
            if mention is None:
                self._log.reject("refers to what is not there", number, line, path=self._path)
                continue
            concepts = (*mention.concepts, concept.removeprefix(f"{RESOURCE}:"))
            self._mentions[target] = replace(mention, concepts=concepts)
        for target, name, value in self._attributes:
            if mention := self._mentions.get(target):
                attributes = (*mention.attributes, (name, value))
                self._mentions[target] = replace(mention, attributes=attributes)
            else:
                self._log.filter("attribute")  # of an event
        relations = tuple(r for r, n, line in self._relations if self._is_resolved(r, n, line))
        return replace(document, mentions=tuple(self._mentions.values()), relations=relations)

    def _is_resolved(self, relation: Relation, number: int, line: str) -> bool:
        missing = [ref for _, ref in relation.arguments if ref not in self._mentions]
        if missing and all(ref.startswith("E") for ref in missing):
            self._log.filter("event about events")
        elif missing:
            self._log.reject("refers to what is not there", number, line, path=self._path)
        return not missing


def write(documents: Iterable[Document], path: Path, overwrite: bool = False) -> None:
    """Write a folder with two files per document, named by its id.

    Args:
        documents: Documents.
        path: Folder to write.
        overwrite: Replace a folder that exists.
    """
    with new_folder(path, overwrite=overwrite) as folder:
        for document in documents:
            write_document(document, folder)


def write_document(document: Document, folder: Path) -> None:
    """Write the two files of a document.

    Args:
        document: The document.
        folder: Folder of the files.
    """
    text = encode_text(document.text, document)
    lines = "".join(f"{line}\n" for line in ann_lines(document))
    document_path(folder, document, ".txt").write_bytes(text)
    document_path(folder, document, ".ann").write_bytes(encode_text(lines, document))


def ann_lines(document: Document) -> Iterator[str]:
    """Yield the lines of mentions, of their concepts and attributes, then of relations."""
    for m in document.mentions:
        offsets = ";".join(f"{start} {end}" for start, end in m.spans)
        text = re.sub(r"[\n\r]", " ", m.text)
        yield f"{m.id}\t{m.type} {offsets}\t{text}"
    references = [(m.id, concept) for m in document.mentions for concept in m.concepts]
    for number, (target, concept) in enumerate(references, 1):
        yield f"N{number}\tReference {target} {_resource(concept, document)}\t{concept}"
    said = [(m.id, *attribute) for m in document.mentions for attribute in m.attributes]
    for number, (target, name, value) in enumerate(said, 1):
        yield f"A{number}\t{name} {target} {value}".rstrip()
    for r in document.relations:
        yield _relation_line(r)


def _relation_line(relation: Relation) -> str:
    letter = _letter(relation)
    if not letter:
        return f"*\t{relation.type} {' '.join(ref for _, ref in relation.arguments)}"
    words = [f"{role}:{ref}" for role, ref in relation.arguments]
    if letter == "E":
        words[0] = words[0].replace(TRIGGER, relation.type, 1)
    else:
        words.insert(0, relation.type)
    return f"{relation.id}\t{' '.join(words)}"


def _letter(relation: Relation) -> str:
    roles = [role for role, _ in relation.arguments]
    if not any(roles):
        return ""
    return "E" if roles[0] == TRIGGER else "R"


def _resource(concept: str, document: Document) -> str:
    if not concept or re.search(r"\s", concept):
        raise OutputError(f"document {document.id}: concept {concept!r} is empty or has whitespace")
    named = _NAMED_RESOURCE.fullmatch(concept) and not concept.startswith(f"{RESOURCE}:")
    return concept if named else f"{RESOURCE}:{concept}"


def assign_mention_ids(document: Document) -> tuple[Document, int]:
    """Assign ids of the form ``T1`` to all mentions, unless all have one already."""
    ids = [mention.id for mention in document.mentions]
    if len(set(ids)) == len(ids) and all(map(_MENTION_ID.fullmatch, ids)):
        return document, 0
    return number_mentions(document, "T", 1)


def assign_relation_ids(document: Document) -> tuple[Document, int]:
    """Assign ids of the form ``R1`` to relations and ``E1`` to events; none without roles."""
    ids = [relation.id for relation in document.relations]
    valid = [bool(re.fullmatch(rf"{_letter(r)}\d+", r.id)) for r in document.relations]
    has_id = [bool(_letter(r)) for r in document.relations]
    unique = len(set(filter(None, ids))) == sum(has_id)
    if unique and all(
        ok if has else not r.id
        for ok, has, r in zip(valid, has_id, document.relations, strict=True)
    ):
        return document, 0
    renamed = tuple(
        replace(r, id=f"{_letter(r)}{number}" if _letter(r) else "")
        for number, r in enumerate(document.relations, 1)
    )
    return replace(document, relations=renamed), sum(bool(each) for each in ids)


def normalise_labels(document: Document) -> tuple[Document, int]:
    """Make the names of types and roles valid in brat; empty ones get a default."""
    n = 0

    def name(label: str, default: str) -> str:
        nonlocal n
        valid = _LABEL_SEPARATORS.sub("_", label) or default
        n += valid != label
        return valid

    mentions = tuple(
        replace(
            m,
            type=name(m.type, "Entity"),
            attributes=tuple(
                (name(key, "Attribute"), name(value, "")) for key, value in m.attributes
            ),
        )
        for m in document.mentions
    )
    relations = []
    for r in document.relations:
        roles = [role for role, _ in r.arguments]
        if any(roles):
            roles = [name(role, f"Arg{i}") for i, role in enumerate(roles, 1)]
        pairs = tuple((role, ref) for role, (_, ref) in zip(roles, r.arguments, strict=True))
        default = "Relation" if any(roles) else "Equiv"
        relations.append(replace(r, type=name(r.type, default), arguments=pairs))
    return replace(document, mentions=mentions, relations=tuple(relations)), n


FORMAT = DocumentFormat(
    recognise=recognise,
    read=read,
    write=write,
    holds=ALL_FEATURES
    - {Feature.LANGUAGE, Feature.PASSAGES, Feature.PARTS, Feature.CONCEPT_RELATIONS},
    steps=(
        ("control characters", replace_characters("\0")),
        (str(Feature.MENTION_RELATIONS), drop_dangling_relations),
        (str(Feature.MENTION_IDS), assign_mention_ids),
        (str(Feature.RELATION_IDS), assign_relation_ids),
        ("names of types and roles", normalise_labels),
    ),
    unique_ids=True,
)
