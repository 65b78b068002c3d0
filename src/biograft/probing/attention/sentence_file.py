"""Sentences with an entity each, from a file: our own lines, annotated shards, any documents.

A line is ``{"text": ..., "entity": ...}`` or, where the entity stands there more than once,
``{"text": ..., "start": 3, "end": 9}``; ``synonym``, ``random``, ``concept``, ``language`` and
``id`` may stand beside. Of documents each mention gives its sentence.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from biograft.corpus.formats import read_documents
from biograft.corpus.formats.fields import MalformedError, field
from biograft.corpus.sentences import split_sentences
from biograft.corpus.shards import SHARDS, Shards
from biograft.documents import Document
from biograft.errors import ConfigError, FormatError, InputError, shorten
from biograft.languages import language_code
from biograft.probing.attention.curves import ReplacedSentence
from biograft.sources.files import exists, is_empty, read_lines
from biograft.sources.json_files import decode_json, peek_object
from biograft.sources.log import ReadLog

OWN = "sentences"
_TEXTS = ("entity", "synonym", "random", "concept", "language", "id")


def read_sentences(
    path: Path, form: str = "", *, limit: int = 0, seed: int = 0, log: ReadLog | None = None
) -> list[ReplacedSentence]:
    """Read the sentences of a file or folder; with a limit so many of them, drawn at random.

    What is wrong in a file of documents is counted in the log; in our own lines it is an error.
    """
    found = _draw(_read(path, form, log or ReadLog(path)), limit, seed)
    if not found:
        raise InputError(
            "holds no mention of a concept",
            path=path,
            remedy="expected documents with mentions, or lines with a text and an entity",
        )
    return found


def find_entity(text: str, entity: str, start: int | None = None) -> tuple[int, int]:
    """Say where an entity stands in a text; where it stands more than once, this must be told."""
    if not entity.strip():
        raise ConfigError("entity: expected a text, found none")
    places = [k for k in range(len(text)) if text.startswith(entity, k)]
    shown = shorten(", ".join(map(str, places)))
    if start is not None and start not in places:
        raise ConfigError(
            f"entity: {shorten(entity)!r} does not stand at character {start}; "
            f"it stands at {shown or 'none'}"
        )
    if not places:
        raise ConfigError(f"entity: {shorten(entity)!r} does not stand in the text, as written")
    if start is None and len(places) > 1:
        raise ConfigError(
            f"entity: {shorten(entity)!r} stands at characters {shown}; say which is meant (--at, "
            "or start in a file)"
        )
    first = places[0] if start is None else start
    return first, first + len(entity)


def _draw(sentences: Iterable[ReplacedSentence], limit: int, seed: int) -> list[ReplacedSentence]:
    """Draw so many, each alike, holding no more than these; they stay in their order."""
    if not limit:
        return list(sentences)
    kept: list[tuple[int, ReplacedSentence]] = []
    draw = random.Random(seed)
    for n, sentence in enumerate(sentences):
        place = n if n < limit else draw.randrange(n + 1)
        if n < limit:
            kept.append((n, sentence))
        elif place < limit:
            kept[place] = (n, sentence)
    return [sentence for _, sentence in sorted(kept, key=lambda each: each[0])]


def _read(path: Path, form: str, log: ReadLog) -> Iterator[ReplacedSentence]:
    if not exists(path):
        raise InputError("does not exist", path=path, remedy="check the path")
    if not form and (path / SHARDS.file).exists():
        return _of_shards(Shards.open(path))
    if form == OWN or (not form and _is_own(path)):
        return _own(path)
    return _of_documents(read_documents(path, form, log))


def _is_own(path: Path) -> bool:
    if path.is_dir() or is_empty(path):
        return False
    try:
        first = next((line for _, line in read_lines(path) if line.strip()), "")
    except InputError:
        return False  # documents may be in other encodings
    keys = peek_object(first).keys()
    return "text" in keys and bool(keys & {"entity", "start"})


def _own(path: Path) -> Iterator[ReplacedSentence]:
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            yield _sentence(decode_json(line), f"{path.name}:{number}")
        except (ValueError, RecursionError) as error:
            raise FormatError("is not JSON", path=path, line=number, text=line) from error
        except (MalformedError, ConfigError) as error:
            raise FormatError(str(error), path=path, line=number, text=line) from error


def _sentence(value: Any, name: str) -> ReplacedSentence:
    text = field(value, "text", str)
    told = {key: field(value, key, str, "") for key in _TEXTS}
    start, end = (field(value, key, int, -1) for key in ("start", "end"))
    if "entity" in value:
        start, end = find_entity(text, told["entity"], start if "start" in value else None)
    if not 0 <= start < end <= len(text) or not text[start:end].strip():
        raise MalformedError("expected an entity of the text, or its start and end in characters")
    return ReplacedSentence(
        text,
        start,
        end,
        synonym=told["synonym"],
        random=told["random"],
        id=told["id"] or name,
        concepts=(told["concept"],) if told["concept"] else (),
        language=language_code(told["language"]) if told["language"] else "",
    )


def _of_shards(shards: Shards) -> Iterator[ReplacedSentence]:
    for document in shards:
        sentences = split_sentences(document.text) if document.spans else []
        whole = ReplacedSentence(document.text, 0, 0, id=document.id, language=document.language)
        for span in document.spans:
            place = replace(whole, start=span.start, end=span.end, concepts=(span.concept,))
            yield _cut(place, sentences)


def _of_documents(documents: Iterable[Document]) -> Iterator[ReplacedSentence]:
    for document in documents:
        sentences = split_sentences(document.text) if document.mentions else []
        whole = ReplacedSentence(document.text, 0, 0, id=document.id, language=document.language)
        for mention in document.mentions:
            # one with gaps, or of several concepts at once, is no place for one name
            if not mention.fragments and not mention.parts and len(mention.concepts) < 2:
                concepts = mention.concepts
                place = replace(whole, start=mention.start, end=mention.end, concepts=concepts)
                yield _cut(place, sentences)


def _cut(whole: ReplacedSentence, sentences: Sequence[tuple[int, int]]) -> ReplacedSentence:
    """Keep the sentence of the entity, or those over which it reaches."""
    touched = [s for s in sentences if s[0] < whole.end and whole.start < s[1]]
    begin = min([whole.start, *(start for start, _ in touched)])
    stop = max([whole.end, *(end for _, end in touched)])
    return replace(
        whole, text=whole.text[begin:stop], start=whole.start - begin, end=whole.end - begin
    )
