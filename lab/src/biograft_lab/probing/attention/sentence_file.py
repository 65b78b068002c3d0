"""Sentences with one entity each: every mention of annotated documents gives its sentence."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from biograft.errors import ConfigError, InputError, shorten
from biograft.kb.sources.log import ReadLog
from biograft.text.documents import Document
from biograft.text.formats import read_documents
from biograft.text.sentences import split_sentences
from biograft_lab.probing.attention.curves import ReplacedSentence


def read_sentences(
    path: Path, form: str = "", *, limit: int = 0, seed: int = 0, log: ReadLog | None = None
) -> list[ReplacedSentence]:
    """Read the sentences of documents; with a limit, a random sample of that size, in order.

    Args:
        path: File or folder of documents with mentions.
        form: Their format; default: recognised.
        limit: Most sentences; 0: all.
        seed: Seed of the sample.
        log: Counts invalid documents.
    """
    sentences = list(_sentences(read_documents(path, form, log or ReadLog(path))))
    if not sentences:
        raise InputError("holds no mention of a concept", path=path, remedy="annotate it first")
    if limit and len(sentences) > limit:
        rows = random.Random(seed).sample(range(len(sentences)), limit)
        sentences = [sentences[row] for row in sorted(rows)]
    return sentences


def find_entity(text: str, entity: str) -> tuple[int, int]:
    """Return the span of an entity, which stands in a text once.

    Args:
        text: The text.
        entity: The entity as written there.
    """
    if not entity.strip() or text.count(entity) != 1:
        raise ConfigError(
            f"entity: expected {shorten(entity)!r} once in the text, as written; found it "
            f"{text.count(entity) if entity.strip() else 0} times"
        )
    return text.index(entity), text.index(entity) + len(entity)


def _sentences(documents: Iterable[Document]) -> Iterator[ReplacedSentence]:
    for document in documents:
        spans = split_sentences(document.text) if document.mentions else []
        for mention in document.mentions:
            # a mention with gaps or several concepts cannot be replaced by one name
            if mention.fragments or mention.parts or len(mention.concepts) > 1:
                continue
            around = [s for s in spans if s[0] < mention.end and mention.start < s[1]]
            begin = min([mention.start, *(start for start, _ in around)])
            stop = max([mention.end, *(end for _, end in around)])
            whole = ReplacedSentence(
                document.text[begin:stop], mention.start - begin, mention.end - begin
            )
            yield replace(
                whole, id=document.id, language=document.language, concepts=mention.concepts
            )
