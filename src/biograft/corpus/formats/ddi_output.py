"""Documents as XML files of DDI 2013, and what these cannot hold."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from biograft.corpus.formats.folders import file_for
from biograft.corpus.formats.text_output import encoded, opening
from biograft.documents import Document, Mention, Passage, Relation
from biograft.runs import new_folder

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
