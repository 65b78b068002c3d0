"""The lines of a brat annotation file, written from a document that was fitted to them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from biograft.corpus.formats.brat_lines import RESOURCE, TRIGGER
from biograft.documents import Document, Relation
from biograft.errors import OutputError

_MENTION_ID = re.compile(r"T\d+")
_PARTING = re.compile(r"[\s:;]+")
_NAMED_RESOURCE = re.compile(r"[^\s:]+:\S+")


def drop_dangling(document: Document) -> tuple[Document, int]:
    """Leave out relations that refer to no mention of the document."""
    ids = {mention.id for mention in document.mentions if mention.id}
    kept = tuple(
        r for r in document.relations if r.arguments and all(ref in ids for _, ref in r.arguments)
    )
    return replace(document, relations=kept), len(document.relations) - len(kept)


def settle_mention_ids(document: Document) -> tuple[Document, int]:
    """Give every mention an id of the form ``T1``; where all have one they keep it."""
    ids = [mention.id for mention in document.mentions]
    if len(set(ids)) == len(ids) and all(map(_MENTION_ID.fullmatch, ids)):
        return document, 0
    renamed: dict[str, str] = {}
    mentions = []
    for number, mention in enumerate(document.mentions, 1):
        renamed.setdefault(mention.id, f"T{number}")
        mentions.append(replace(mention, id=f"T{number}"))
    relations = tuple(
        replace(r, arguments=tuple((role, renamed[ref]) for role, ref in r.arguments))
        for r in document.relations
    )
    changed = replace(document, mentions=tuple(mentions), relations=relations)
    return changed, sum(bool(each) for each in ids)


def settle_relation_ids(document: Document) -> tuple[Document, int]:
    """Give relations ids of the form ``R1``, events ``E1``, and those without roles none."""
    given = [relation.id for relation in document.relations]
    fine = [bool(re.fullmatch(rf"{_letter(r)}\d+", r.id)) for r in document.relations]
    has_id = [bool(_letter(r)) for r in document.relations]
    unique = len(set(filter(None, given))) == sum(has_id)
    if unique and all(ok if has else not r.id for ok, has, r in zip(
        fine, has_id, document.relations, strict=True
    )):  # fmt: skip
        return document, 0
    renamed = tuple(
        replace(r, id=f"{_letter(r)}{number}" if _letter(r) else "")
        for number, r in enumerate(document.relations, 1)
    )
    return replace(document, relations=renamed), sum(bool(each) for each in given)


def _letter(relation: Relation) -> str:
    roles = [role for role, _ in relation.arguments]
    if not any(roles):
        return ""
    return "E" if roles[0] == TRIGGER else "R"


def settle_names(document: Document) -> tuple[Document, int]:
    """Write names of types and roles as brat can, and name those that have none."""
    n = 0

    def name(given: str, default: str) -> str:
        nonlocal n
        found = _PARTING.sub("_", given) or default
        n += found != given
        return found

    mentions = tuple(replace(m, type=name(m.type, "Entity")) for m in document.mentions)
    relations = []
    for r in document.relations:
        roles = [role for role, _ in r.arguments]
        if any(roles):
            roles = [name(role, f"Arg{i}") for i, role in enumerate(roles, 1)]
        pairs = tuple((role, ref) for role, (_, ref) in zip(roles, r.arguments, strict=True))
        default = "Relation" if any(roles) else "Equiv"
        relations.append(replace(r, type=name(r.type, default), arguments=pairs))
    return replace(document, mentions=mentions, relations=tuple(relations)), n


def lines_of(document: Document) -> Iterator[str]:
    """Write mentions, then the concepts of each, then relations."""
    for m in document.mentions:
        places = ";".join(f"{start} {end}" for start, end in m.spans)
        text = re.sub(r"[\n\r]", " ", m.text)
        yield f"{m.id}\t{m.type} {places}\t{text}"
    references = [(m.id, concept) for m in document.mentions for concept in m.concepts]
    for number, (target, concept) in enumerate(references, 1):
        yield f"N{number}\tReference {target} {_resource(concept, document)}\t{concept}"
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


def _resource(concept: str, document: Document) -> str:
    if not concept or re.search(r"\s", concept):
        raise OutputError(f"document {document.id}: concept {concept!r} is empty or holds a blank")
    named = _NAMED_RESOURCE.fullmatch(concept) and not concept.startswith(f"{RESOURCE}:")
    return concept if named else f"{RESOURCE}:{concept}"
