"""CMDD: reader of Chinese medical dialogues with symptoms, one dialogue per JSON line.

    {"example-id": "10271527", "dialogue-content": [{"speaker": "患者", "sentence": "她吃了就吐",
      "label": "OOOOB", "normalized": ["呕吐"], "type": ["1"]}]}

The text of a document has one sentence per line; each is a passage whose kind is its speaker. The
normal form of a symptom is its concept, and its status (1, 2, 3: whether present) its type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from biograft.kb.sources.format import Probe
from biograft.kb.sources.json_files import read_objects
from biograft.kb.sources.log import ReadLog
from biograft.text.documents import Document, Mention, Passage
from biograft.text.formats.conll import OUTSIDE
from biograft.text.formats.format import DocumentFormat, MalformedError, field, fields, first_object

_MENTION = re.compile("BI*")


def recognise(probe: Probe) -> bool:
    """JSON lines with the key ``dialogue-content``."""
    cut = '"dialogue-content"' in probe.text and probe.text.lstrip().startswith("{")
    return "dialogue-content" in first_object(probe) or cut


def read(path: Path, log: ReadLog, encoding: str = "utf-8") -> Iterator[Document]:
    """Read one dialogue per line; one without an id is named by its line.

    Args:
        path: The file.
        log: Gets what is wrong.
        encoding: That of the file.
    """
    for row in read_objects(path, log, encoding):
        try:
            document = Document(field(row.value, "example-id", str, str(row.line)), "")
            field(row.value, "dialogue-content", list)
            for turn in fields(row.value, "dialogue-content", dict):
                document = _with_turn(document, turn, log, path, row.line)
        except MalformedError as error:
            log.reject(str(error), row.line, row.text, path=path)
            continue
        log.filter("data-split", int("data-split" in row.value))
        yield document


def _with_turn(
    document: Document, turn: dict[str, Any], log: ReadLog, path: Path, line: int
) -> Document:
    """Add a turn to a dialogue."""
    sentence = field(turn, "sentence", str)
    label = field(turn, "label", str, OUTSIDE * len(sentence))
    begin = len(document.text) + 1 if document.passages else 0
    text = f"{document.text}\n{sentence}" if document.passages else sentence
    spans = [match.span() for match in _MENTION.finditer(label)]
    if len(label) != len(sentence):
        log.reject("not as many tags as characters", line, f"{sentence} {label}", path=path)
        spans = []
    elif label.count("I") != sum(end - start - 1 for start, end in spans):
        log.doubt("a tag I without a B before it", line, f"{sentence} {label}", path=path)
    concepts, kinds = fields(turn, "normalized", str), fields(turn, "type", str)
    if not len(spans) == len(concepts) == len(kinds):
        if spans or concepts or kinds:
            log.doubt("not as many normal forms as tags B", line, f"{sentence} {label}", path=path)
        if len(concepts) != len(spans):
            concepts = [""] * len(spans)
        if len(kinds) != len(spans):
            kinds = [""] * len(spans)
    mentions = tuple(
        Mention(begin + a, begin + b, sentence[a:b], (concept,) if concept else (), kind)
        for (a, b), concept, kind in zip(spans, concepts, kinds, strict=True)
    )
    passage = Passage(begin, len(text), field(turn, "speaker", str, ""))
    return replace(
        document,
        text=text,
        mentions=document.mentions + mentions,
        passages=(*document.passages, passage),
    )


FORMAT = DocumentFormat(recognise=recognise, read=read)
