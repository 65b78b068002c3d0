"""The lines of a PubTator document, and what they cannot hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from biograft.documents import Document, Mention, Passage, Relation
from biograft.errors import OutputError

_SENTENCE = re.compile(r"(?<=[.?!]) (?=\S)")
_CID_ROLES = ("Chemical", "Disease")
_PARTING = re.compile(r"[\t\n\r\0]")


def parse_relation(columns: list[str]) -> Relation:
    """Take the columns of a relation, which is between concepts."""
    kind, refs = columns[1], columns[2:]
    return Relation(kind, tuple(zip(_roles(kind, len(refs)), refs, strict=True)), of="concepts")


def _roles(kind: str, n: int) -> tuple[str, ...]:
    """Name the roles of the arguments, which the format does not."""
    return _CID_ROLES if (kind, n) == ("CID", 2) else tuple(f"Arg{i + 1}" for i in range(n))


def settle_roles(document: Document) -> tuple[Document, int]:
    """Give the relations of a document the roles they will be read back with."""
    renamed = tuple(
        replace(r, arguments=tuple(
            zip(_roles(r.type, len(r.arguments)), (ref for _, ref in r.arguments), strict=True)
        ))
        for r in document.relations
    )  # fmt: skip
    n = sum(a != b for a, b in zip(renamed, document.relations, strict=True))
    return replace(document, relations=renamed), n


def settle(document: Document) -> tuple[Document, int]:
    """Part the text of a document in title and abstract, the only passages there can be."""
    cut = _cut(document)
    passages = tuple(
        passage
        for passage in (
            Passage(0, cut, "title"),
            Passage(cut + 1, len(document.text), "abstract"),
        )
        if passage.start < passage.end
    )
    n = sum(passage not in passages for passage in document.passages)
    return replace(document, passages=passages), n


def _cut(document: Document) -> int:
    """Find where the title ends: at a passage's bound, else with the first sentence."""
    text = document.text
    for passage in document.passages:
        if passage.kind == "title" and passage.start == 0:
            rest = text[passage.end :]
            if not rest or (rest[0] == " " and len(rest) > 1):
                return passage.end
        if passage.kind == "abstract" and 0 < passage.start < passage.end == len(text):
            cut = passage.start - 1
            if text[cut] == " ":
                return cut
    found = _SENTENCE.search(text)
    return found.start() if found else len(text)


def lines_of(document: Document) -> Iterator[str]:
    """Write the lines of a document that has been settled and checked."""
    cut = _cut(document)
    yield f"{document.id}|t|{document.text[:cut]}"
    yield f"{document.id}|a|{document.text[cut + 1 :]}"
    for m in document.mentions:
        cells = [
            document.id,
            str(m.start),
            str(m.end),
            m.text,
            m.type,
            "|".join(m.concepts) or "-1",
        ]
        yield "\t".join([*cells, "|".join(m.parts)] if m.parts else cells)
    for relation in document.relations:
        yield "\t".join([document.id, relation.type, *(ref for _, ref in relation.arguments)])


def check(document: Document) -> None:
    """Refuse what the format cannot hold, rather than write what reads differently."""
    if not document.id.strip() or re.search(r"[|\t\n\r\0]", document.id):
        raise OutputError(
            f"document id {document.id!r}: PubTator takes no empty one, nor `|`, tabs, line ends"
        )
    where = f"document {document.id}: "
    if re.search(r"[\n\r\0]", document.text):
        raise OutputError(
            f"{where}its text holds a line end, which PubTator cannot; make it a blank first"
        )
    if not document.text.isascii() and any("\ud800" <= c <= "\udfff" for c in document.text):
        raise OutputError(f"{where}its text holds half a surrogate pair, which no file can")
    for mention in document.mentions:
        if reason := _unwritable(document, mention):
            raise OutputError(f"{where}mention {mention.text!r} at {mention.start}: {reason}")
    for relation in document.relations:
        if reason := _unwritable_relation(relation):
            raise OutputError(f"{where}relation {relation.type!r}: {reason}")


def _unwritable(document: Document, mention: Mention) -> str:
    """Say why a mention cannot be written; nothing if it can."""
    found = document.text[mention.start : mention.end]
    if not (0 <= mention.start < mention.end) or found != mention.text:
        return f"the text has {found!r} there; PubTator has no mentions with gaps"
    if _PARTING.search("".join([mention.text, mention.type, *mention.parts])):
        return "holds a tab or line end, which part the columns of PubTator"
    for concept in mention.concepts:
        if concept in ("", "-1") or concept != concept.strip() or re.search(r"[|+\s]", concept):
            return f"concept {concept!r} holds what parts ids in PubTator, or means none"
    if any("|" in part for part in mention.parts) or mention.parts == ("",):
        return "a part of it is empty or holds `|`, which parts them in PubTator"
    return ""


def _unwritable_relation(relation: Relation) -> str:
    refs = [ref for _, ref in relation.arguments]
    if relation.of != "concepts" or not refs:
        return "PubTator has relations between concepts only"
    if relation.type.isdecimal() or _PARTING.search("".join([relation.type, *refs])):
        return "its name is a number, or holds a tab or line end with its ids"
    return ""
