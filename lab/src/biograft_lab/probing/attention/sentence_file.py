"""Sentences with one entity each, read from JSON lines, annotated shards or documents.

A line is ``{"text": ..., "entity": ...}`` or, if the entity occurs several times, ``{"text": ...,
"start": 3, "end": 9}``, with optional ``synonym``, ``random``, ``concept``, ``language`` and
``id``. Each mention of a document gives one sentence.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from biograft.errors import ConfigError, FormatError, InputError, shorten
from biograft.kb.names import language_code
from biograft.kb.sources.files import exists, is_empty, read_lines
from biograft.kb.sources.json_files import decode_json, peek_object
from biograft.kb.sources.log import ReadLog
from biograft.text.documents import Document
from biograft.text.formats import read_documents
from biograft.text.formats.format import MalformedError, field
from biograft.text.sentences import split_sentences
from biograft.text.shards import SHARDS, Shards
from biograft_lab.probing.attention.curves import ReplacedSentence

SENTENCES = "sentences"
_TEXTS = ("entity", "synonym", "random", "concept", "language", "id")


def read_sentences(
    path: Path, form: str = "", *, limit: int = 0, seed: int = 0, log: ReadLog | None = None
) -> list[ReplacedSentence]:
    """Read the sentences of a file or folder; with a limit, a random sample of that size.

    Invalid documents are counted in the log; invalid JSON lines are an error.
    """
    sentences = _sample(_read(path, form, log or ReadLog(path)), limit, seed)
    if not sentences:
        raise InputError(
            "holds no mention of a concept",
            path=path,
            remedy="expected documents with mentions, or lines with a text and an entity",
        )
    return sentences


def find_entity(text: str, entity: str, start: int | None = None) -> tuple[int, int]:
    """Return the span of an entity in a text; ``start`` is needed if it occurs several times."""
    if not entity.strip():
        raise ConfigError("entity: expected a text, found none")
    starts = [k for k in range(len(text)) if text.startswith(entity, k)]
    listed = shorten(", ".join(map(str, starts)))
    if start is not None and start not in starts:
        raise ConfigError(
            f"entity: {shorten(entity)!r} does not stand at character {start}; "
            f"it stands at {listed or 'none'}"
        )
    if not starts:
        raise ConfigError(f"entity: {shorten(entity)!r} does not stand in the text, as written")
    if start is None and len(starts) > 1:
        raise ConfigError(
            f"entity: {shorten(entity)!r} stands at characters {listed}; say which is meant (--at, "
            "or start in a file)"
        )
    first = starts[0] if start is None else start
    return first, first + len(entity)


def _sample(sentences: Iterable[ReplacedSentence], limit: int, seed: int) -> list[ReplacedSentence]:
    """Sample uniformly with a reservoir, and keep the order."""
    if not limit:
        return list(sentences)
    reservoir: list[tuple[int, ReplacedSentence]] = []
    rng = random.Random(seed)
    for n, sentence in enumerate(sentences):
        index = n if n < limit else rng.randrange(n + 1)
        if n < limit:
            reservoir.append((n, sentence))
        elif index < limit:
            reservoir[index] = (n, sentence)
    return [sentence for _, sentence in sorted(reservoir, key=lambda each: each[0])]


def _read(path: Path, form: str, log: ReadLog) -> Iterator[ReplacedSentence]:
    if not exists(path):
        raise InputError("does not exist", path=path, remedy="check the path")
    if not form and (path / SHARDS.file).exists():
        return _of_shards(Shards.open(path))
    if form == SENTENCES or (not form and _is_sentence_file(path)):
        return _read_sentences(path)
    return _of_documents(read_documents(path, form, log))


def _is_sentence_file(path: Path) -> bool:
    if path.is_dir() or is_empty(path):
        return False
    try:
        first = next((line for _, line in read_lines(path) if line.strip()), "")
    except InputError:
        return False  # documents may have other encodings
    keys = peek_object(first).keys()
    return "text" in keys and bool(keys & {"entity", "start"})


def _read_sentences(path: Path) -> Iterator[ReplacedSentence]:
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
    values = {key: field(value, key, str, "") for key in _TEXTS}
    start, end = (field(value, key, int, -1) for key in ("start", "end"))
    if "entity" in value:
        start, end = find_entity(text, values["entity"], start if "start" in value else None)
    if not 0 <= start < end <= len(text) or not text[start:end].strip():
        raise MalformedError("expected an entity of the text, or its start and end in characters")
    return ReplacedSentence(
        text,
        start,
        end,
        synonym=values["synonym"],
        random=values["random"],
        id=values["id"] or name,
        concepts=(values["concept"],) if values["concept"] else (),
        language=language_code(values["language"]) if values["language"] else "",
    )


def _of_shards(shards: Shards) -> Iterator[ReplacedSentence]:
    for document in shards:
        sentences = split_sentences(document.text) if document.spans else []
        whole = ReplacedSentence(document.text, 0, 0, id=document.id, language=document.language)
        for span in document.spans:
            located = replace(whole, start=span.start, end=span.end, concepts=(span.concept,))
            yield _cut(located, sentences)


def _of_documents(documents: Iterable[Document]) -> Iterator[ReplacedSentence]:
    for document in documents:
        sentences = split_sentences(document.text) if document.mentions else []
        whole = ReplacedSentence(document.text, 0, 0, id=document.id, language=document.language)
        for mention in document.mentions:
            # a mention with gaps or several concepts cannot be replaced by one name
            if not mention.fragments and not mention.parts and len(mention.concepts) < 2:
                concepts = mention.concepts
                located = replace(whole, start=mention.start, end=mention.end, concepts=concepts)
                yield _cut(located, sentences)


def _cut(whole: ReplacedSentence, sentences: Sequence[tuple[int, int]]) -> ReplacedSentence:
    """Keep the sentence of the entity, or the sentences that it spans."""
    overlapping = [s for s in sentences if s[0] < whole.end and whole.start < s[1]]
    begin = min([whole.start, *(start for start, _ in overlapping)])
    stop = max([whole.end, *(end for _, end in overlapping)])
    return replace(
        whole, text=whole.text[begin:stop], start=whole.start - begin, end=whole.end - begin
    )
